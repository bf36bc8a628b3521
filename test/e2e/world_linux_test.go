package e2e

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"

	"github.com/miekg/dns"
	"golang.org/x/sys/unix"

	"egressd/test/iproute"
)

// upstreamDNS is where launch is told to send its questions. Like every
// address, it is the world's own.
const upstreamDNS = "9.9.9.9"

// worldPorts are where TCP canaries listen, on every address there is. The
// sniffer sees attempts at all other ports too.
var worldPorts = []string{"22", "25", "80", "443", "853", "5432", "6379", "8000", "8050", "8100", "8080", "8443", "9000", "9418", "3306"}

// world is everything outside the sandbox.
type world struct {
	dns     *dnsServer
	origins *origins
	sniffer *sniffer

	listeners []net.Listener
	packets   []net.PacketConn
	servers   []*dns.Server
	wg        sync.WaitGroup
}

// newWorld makes every address local and starts the canaries.
func newWorld(base string) (*world, error) {
	if err := errors.Join(iproute.Up("lo"), iproute.Route{To: iproute.All4, Dev: "lo", Local: true}.Add(),
		iproute.Route{To: iproute.All6, Dev: "lo", Local: true}.Add()); err != nil {
		return nil, err
	}
	// Ping is part of the positive controls; a user namespace may not be let to allow it.
	_ = os.WriteFile("/proc/sys/net/ipv4/ping_group_range", []byte("0 2147483647"), 0)
	w := &world{dns: newDNSServer()}
	var err error
	if w.sniffer, err = startSniffer(1, "127.0.0.1"); err != nil {
		return nil, fmt.Errorf("sniffer: %w", err)
	}
	if w.origins, err = newOrigins(base); err != nil {
		return nil, err
	}
	for _, port := range worldPorts {
		ln, err := net.Listen("tcp", "[::]:"+port)
		if err != nil {
			return nil, err
		}
		w.listeners = append(w.listeners, ln)
		w.wg.Go(func() { w.origins.serve(ln) })
	}
	for _, port := range []string{"123", "443", "1900", "5353", "5355", "4242"} {
		for _, network := range []string{"udp4", "udp6"} {
			if err := w.echoUDP(network, port); err != nil {
				return nil, err
			}
		}
	}
	return w, w.serveDNS()
}

// serveDNS answers at port 53 of every address, over UDP and TCP.
func (w *world) serveDNS() error {
	for _, network := range []string{"udp", "tcp"} {
		ready := make(chan struct{})
		s := &dns.Server{Net: network, Handler: w.dns, NotifyStartedFunc: func() { close(ready) }}
		var err error
		if network == "udp" {
			s.PacketConn, err = listenAnywhere(network, "53")
		} else {
			s.Listener, err = net.Listen(network, ":53")
		}
		if err != nil {
			return err
		}
		failed := make(chan error, 1)
		w.wg.Go(func() { failed <- s.ActivateAndServe() })
		select {
		case <-ready:
		case err := <-failed:
			return fmt.Errorf("dns over %s: %w", network, err)
		}
		w.servers = append(w.servers, s)
	}
	return nil
}

// listenAnywhere listens on all addresses and may answer from each, though
// none is an interface's own.
func listenAnywhere(network, port string) (net.PacketConn, error) {
	lc := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		return raw.Control(func(fd uintptr) {
			_ = unix.SetsockoptInt(int(fd), unix.SOL_IP, unix.IP_FREEBIND, 1)     // the controls tell when it is missing
			_ = unix.SetsockoptInt(int(fd), unix.SOL_IPV6, unix.IPV6_FREEBIND, 1) // as above
		})
	}}
	return lc.ListenPacket(context.Background(), network, ":"+port)
}

// echoUDP answers every datagram with the marker, from the address it was sent to.
func (w *world) echoUDP(network, port string) error {
	pc, err := listenAnywhere(network, port)
	if err != nil {
		return err
	}
	w.packets = append(w.packets, pc)
	w.wg.Go(func() { echoPackets(pc.(*net.UDPConn)) })
	return nil
}

func (w *world) close() error {
	var errs []error
	for _, s := range w.servers {
		errs = append(errs, s.Shutdown())
	}
	for _, ln := range w.listeners {
		errs = append(errs, ln.Close())
	}
	for _, pc := range w.packets {
		errs = append(errs, pc.Close())
	}
	w.origins.close()
	errs = append(errs, w.sniffer.close())
	w.wg.Wait()
	return errors.Join(errs...)
}

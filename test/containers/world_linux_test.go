//go:build system

package containers

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"

	"egressd/netns"
	"egressd/test/e2e/job"
)

// Names and addresses of the world outside. Every address is its own, so that
// whatever leaves a pod arrives somewhere and is seen.
const (
	allowedHost = "api.example.com"
	otherHost   = "other.example.org" // allowed by the changed policy alone
	deniedHost  = "denied.example.net"
	originAddr  = "45.33.32.10"
	canaryAddr  = "45.33.32.66"
	canaryAddr6 = "2600:3c01::66"
	resolver    = "9.9.9.9"
	podAddr     = "10.77.0.2"
	podAddr6    = "fd77::2"
	gatewayAddr = "10.77.0.1"
)

// canaryPorts are where somebody listens, on every address.
var canaryPorts = []string{"22", "25", "80", "443", "853", "3128", "4444", "8080"}

// world is a network namespace that plays the Internet, with a cable to the
// namespace of one pod.
type world struct {
	inside  string // path of the pod's namespace
	outside *netns.NS
	caFile  string
	resolv  string // resolv.conf for the pod's containers

	cert     tls.Certificate
	requests atomic.Int64 // to allowed or changed names
	strays   atomic.Int64 // anything that no policy allows
	seen     sync.Map     // what strays were

	closers []io.Closer
	wg      sync.WaitGroup
}

// newWorld makes both namespaces; they end with the test.
func (r *rig) newWorld(t *testing.T) *world {
	t.Helper()
	n := worldNumber.Add(1)
	pod, out := fmt.Sprintf("%s-p%d", r.id, n), fmt.Sprintf("%s-o%d", r.id, n)
	veth := fmt.Sprintf("eg%d-%d", os.Getpid()%100000, n) // 15 bytes at most
	script := strings.NewReplacer("POD", pod, "OUT", out, "VETH", veth).Replace(`
ip netns add POD
ip netns add OUT
ip -n POD link add VETH type veth peer name eth0
ip -n POD link set VETH netns OUT
for ns in POD OUT; do
  ip netns exec $ns sysctl -qw net.ipv6.conf.all.disable_ipv6=0 net.ipv6.conf.default.accept_dad=0 net.ipv6.conf.all.accept_dad=0 || true
  ip -n $ns link set lo up
done
ip -n POD link set eth0 up
ip -n OUT link set VETH up
ip -n POD addr add 10.77.0.2/24 dev eth0
ip -n OUT addr add 10.77.0.1/24 dev VETH
ip -n POD -6 addr add fd77::2/64 dev eth0 nodad
ip -n OUT -6 addr add fd77::1/64 dev VETH nodad
ip -n POD route add default via 10.77.0.1
ip -n POD -6 route add default via fd77::1
ip -n OUT -6 addr add 2600:3c01::66/128 dev lo nodad
ip -n OUT route add local default dev lo
ip -n OUT -6 route add local default dev lo table main
ip netns exec OUT sysctl -qw "net.ipv4.ping_group_range=0 2147483647" || true
ip netns exec POD sysctl -qw "net.ipv4.ping_group_range=0 2147483647"`)
	t.Cleanup(func() {
		_ = r.cmd("ip", "netns", "del", out).run() // a test that failed early has none
		_ = r.cmd("ip", "netns", "del", pod).run()
	})
	if err := r.cmd("sh", "-ec", script).run(); err != nil {
		t.Fatal(err)
	}
	w := &world{inside: "/run/netns/" + pod}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	w.caFile = filepath.Join(dir, "ca.pem")
	w.resolv = write(t, filepath.Join(dir, "resolv.conf"), "nameserver "+resolver+"\noptions timeout:2 attempts:1\n")
	var err error
	if w.outside, err = netns.Open("/run/netns/" + out); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.close(); err != nil {
			t.Error(err)
		}
	})
	if err := w.open(); err != nil {
		t.Fatal(err)
	}
	return w
}

// worldNumber tells the worlds of a run apart.
var worldNumber atomic.Int64

func (w *world) open() error {
	if err := w.makeCert(); err != nil {
		return err
	}
	return w.outside.Do(func() error {
		for _, port := range canaryPorts {
			ln, err := net.Listen("tcp", "[::]:"+port)
			if err != nil {
				return err
			}
			w.closers = append(w.closers, ln)
			w.serve(port, ln)
		}
		for _, port := range []string{"123", "443", "4444"} {
			for _, addr := range []string{canaryAddr, canaryAddr6, originAddr} { // answers come from where the question went
				pc, err := net.ListenPacket("udp", net.JoinHostPort(addr, port))
				if err != nil {
					return err
				}
				w.closers = append(w.closers, pc)
				w.wg.Go(func() { w.strayPackets(pc) })
			}
		}
		return w.serveDNS()
	})
}

// serve tells requests to allowed names from everything else that arrives.
func (w *world) serve(port string, ln net.Listener) {
	switch port {
	case "443":
		ln = tls.NewListener(ln, &tls.Config{Certificates: []tls.Certificate{w.cert}})
	case "80":
	default:
		w.wg.Go(func() { w.strayConns(port, ln) })
		return
	}
	srv := &http.Server{Handler: http.HandlerFunc(w.origin), ErrorLog: log.New(io.Discard, "", 0), ReadHeaderTimeout: 10 * time.Second}
	w.closers = append(w.closers, srv)
	w.wg.Go(func() { _ = srv.Serve(ln) }) // ends with close
}

func (w *world) origin(rw http.ResponseWriter, r *http.Request) {
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	local, _, _ := net.SplitHostPort(r.Context().Value(http.LocalAddrContextKey).(net.Addr).String())
	if host != allowedHost && host != otherHost || local != originAddr {
		w.stray("http " + host + " at " + local)
		_, _ = io.WriteString(rw, job.Marker) // the client may be gone
		return
	}
	w.requests.Add(1)
	fmt.Fprintf(rw, "hello from %s\n", host)
}

func (w *world) stray(what string) {
	w.strays.Add(1)
	w.seen.Store(what, true)
}

// strayed lists what arrived and should not have.
func (w *world) strayed() (all []string) {
	w.seen.Range(func(k, _ any) bool {
		all = append(all, k.(string))
		return true
	})
	return all
}

func (w *world) strayConns(port string, ln net.Listener) {
	for {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		w.stray("tcp " + port)
		_, _ = io.WriteString(c, job.Marker) // it counts already
		_ = c.Close()
	}
}

func (w *world) strayPackets(pc net.PacketConn) {
	buf := make([]byte, 2048)
	for {
		_, from, err := pc.ReadFrom(buf)
		if err != nil {
			return
		}
		w.stray("udp")
		_, _ = pc.WriteTo([]byte(job.Marker), from) // it counts already
	}
}

// serveDNS answers at port 53 of every address.
func (w *world) serveDNS() error {
	pc, err := net.ListenPacket("udp4", resolver+":53")
	if err != nil {
		return err
	}
	ln, err := net.Listen("tcp", ":53")
	if err != nil {
		return err
	}
	// Any other address than the resolver's is a way out that nobody gave.
	other, err := net.ListenPacket("udp4", canaryAddr+":53")
	if err != nil {
		return err
	}
	w.closers = append(w.closers, other)
	w.wg.Go(func() { w.strayPackets(other) })
	for _, s := range []*dns.Server{{PacketConn: pc, Handler: w}, {Listener: ln, Handler: w}} {
		ready := make(chan struct{})
		s.NotifyStartedFunc = func() { close(ready) }
		failed := make(chan error, 1)
		w.wg.Go(func() { failed <- s.ActivateAndServe() })
		select {
		case <-ready:
		case err := <-failed:
			return err
		}
		w.closers = append(w.closers, dnsCloser{s})
	}
	return nil
}

type dnsCloser struct{ s *dns.Server }

func (d dnsCloser) Close() error { return d.s.Shutdown() }

// ServeDNS knows the two hosts; a question for anything else should not have
// come here.
func (w *world) ServeDNS(rw dns.ResponseWriter, q *dns.Msg) {
	m := new(dns.Msg).SetReply(q)
	name := strings.ToLower(strings.TrimSuffix(q.Question[0].Name, "."))
	switch {
	case name != allowedHost && name != otherHost:
		w.stray("dns " + name)
		m.Rcode = dns.RcodeNameError
	case q.Question[0].Qtype == dns.TypeA:
		m.Answer = []dns.RR{&dns.A{
			Hdr: dns.RR_Header{Name: q.Question[0].Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 60}, A: net.ParseIP(originAddr),
		}}
	}
	_ = rw.WriteMsg(m) // the client asks again
}

// makeCert makes an authority, and a certificate for every name and address.
func (w *world) makeCert() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		DNSNames: []string{allowedHost, otherHost, deniedHost}, IPAddresses: []net.IP{net.ParseIP(canaryAddr), net.ParseIP(originAddr)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &key.PublicKey, key)
	if err != nil {
		return err
	}
	w.cert = tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
	return os.WriteFile(w.caFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o644)
}

func (w *world) close() error {
	var errs []error
	for _, c := range w.closers {
		if err := c.Close(); !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	w.wg.Wait()
	return errors.Join(append(errs, w.outside.Close())...)
}

// dial connects from outside to the pod, as a neighbour would.
func (w *world) dial(addr string) (c net.Conn, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	err = w.outside.Do(func() error {
		c, err = new(net.Dialer).DialContext(ctx, "tcp", addr)
		return err
	})
	return c, err
}

// get reads a page of the pod, as a scraper outside would.
func (w *world) get(url string) (string, error) {
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext:       func(_ context.Context, _, addr string) (net.Conn, error) { return w.dial(addr) },
	}}
	resp, err := client.Get(url)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err == nil && resp.StatusCode != http.StatusOK {
		err = errors.New(resp.Status)
	}
	return string(body), err
}

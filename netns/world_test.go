//go:build linux

package netns

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"egressd/netns/capture"
	"egressd/netns/capture/rules"
	"egressd/netns/nft"
)

// patience bounds what should be immediate.
const patience = 2 * time.Second

// world is a captured namespace with something behind each door.
type world struct {
	doors *capture.Doors
}

// newWorld sets up like Setup, with the rules as edit leaves them.
func newWorld(t *testing.T, edit func(*nft.Table)) world {
	t.Helper()
	freshNamespace(t)
	l := link(t)
	r := rules.Capture(dnsPort, testTransparent, true)
	if edit != nil {
		edit(&r)
	}
	var err error
	d := &capture.Doors{IPv6: l.IPv6, ProxyPort: proxyPort}
	t.Cleanup(func() { d.Close() })
	if d.Refusals, err = capture.OpenRefusals(); err != nil {
		t.Fatal(err)
	}
	apply(t, r)
	if err := d.Listen([]uint16{testTransparent}); err != nil {
		t.Fatal(err)
	}
	w := world{doors: d}
	w.serve(t)
	return w
}

// serve tells each captured client which destination it asked for.
func (w world) serve(t *testing.T) {
	t.Helper()
	for _, f := range w.doors.Transparent {
		serveTCP(t, f, "gate")
	}
	serveTCP(t, w.doors.DNSTCP, "dns")
	serveUDP(t, w.doors.DNSUDP)
}

func serveTCP(t *testing.T, f *os.File, who string) {
	t.Helper()
	ln, err := net.FileListener(f)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			fmt.Fprintf(c, "%s %s\n", who, destination(c))
			c.Close()
		}
	}()
	t.Cleanup(func() { ln.Close(); <-done })
}

func serveUDP(t *testing.T, f *os.File) {
	t.Helper()
	pc, err := PacketConn(f)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		b := make([]byte, 512)
		for {
			n, from, err := pc.ReadFrom(b)
			if err != nil {
				return
			}
			if _, err := pc.WriteTo(b[:n], from); err != nil {
				t.Errorf("reply to %v: %v", from, err)
			}
		}
	}()
	t.Cleanup(func() { pc.Close(); <-done })
}

// destination is what proxy does: SO_ORIGINAL_DST, else the local address.
func destination(c net.Conn) netip.AddrPort {
	local := c.LocalAddr().(*net.TCPAddr).AddrPort()
	local = netip.AddrPortFrom(local.Addr().Unmap(), local.Port())
	raw, err := c.(syscall.Conn).SyscallConn()
	if err != nil {
		return local
	}
	_ = raw.Control(func(fd uintptr) {
		const originalDst = 80 // SO_ORIGINAL_DST, IP6T_SO_ORIGINAL_DST
		if local.Addr().Is4() {
			if m, err := unix.GetsockoptIPv6Mreq(int(fd), unix.SOL_IP, originalDst); err == nil {
				a := netip.AddrFrom4([4]byte(m.Multiaddr[4:8]))
				local = netip.AddrPortFrom(a, binary.BigEndian.Uint16(m.Multiaddr[2:4]))
			}
			return
		}
		if m, err := unix.GetsockoptIPv6MTUInfo(int(fd), unix.SOL_IPV6, originalDst); err == nil {
			port := m.Addr.Port<<8 | m.Addr.Port>>8
			local = netip.AddrPortFrom(netip.AddrFrom16(m.Addr.Addr), port)
		}
	})
	return local
}

// ask connects to addr and reports what the other end says.
func ask(addr string, from netip.Addr) (string, error) {
	d := net.Dialer{Timeout: patience}
	d.SetMultipathTCP(false)
	if from.IsValid() {
		d.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(from, 0))
	}
	c, err := d.DialContext(context.Background(), "tcp", addr)
	if err != nil {
		return "", err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(patience))
	b, err := io.ReadAll(c)
	return strings.TrimSpace(string(b)), err
}

// inner starts a local program's TCP server.
func inner(t *testing.T, addr string) {
	t.Helper()
	serveTCP(t, listenTCP(t, addr), "inner")
}

// without removes the rules whose text contains s from every chain.
func without(s string) func(*nft.Table) {
	return func(r *nft.Table) {
		found := false
		for i := range r.Chains {
			c := &r.Chains[i]
			c.Rules = slices.DeleteFunc(slices.Clone(c.Rules), func(l nft.Rule) bool {
				hit := strings.Contains(l.String(), s)
				found = found || hit
				return hit
			})
		}
		if !found {
			panic("no rule has " + s)
		}
	}
}

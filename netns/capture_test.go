//go:build linux

package netns

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"egressd/netns/capture"
	"egressd/netns/capture/rules"
)

func TestTCPIsCaptured(t *testing.T) {
	newWorld(t, nil)
	for _, dst := range []string{
		"8.8.8.8:443", "1.1.1.1:1", "93.184.216.34:65535", "10.0.0.1:22", "169.254.169.254:80", "198.18.0.7:5432",
		"192.0.2.1:8080",     // our own address
		"8.8.8.8:3129",       // the port of the listener elsewhere
		"128.0.0.1:80",       // just past 127/8
		"126.255.255.255:80", // just before
		"240.0.0.1:80",       // reserved
		"[2606:4700::1111]:443", "[fd00::1]:1", "[2001:db8::1]:65535", "[::2]:80", "[64:ff9b::808:808]:443",
	} {
		got, err := ask(dst, netip.Addr{})
		if err != nil || got != "gate "+dst {
			t.Errorf("%s: got %q, %v", dst, got, err)
		}
	}
	// A program chooses its own source.
	for dst, src := range map[string]string{
		"8.8.8.8:443": "127.0.0.1", "8.8.8.8:80": "9.9.9.9", "[2606:4700::1111]:443": "::1",
	} {
		got, err := ask(dst, netip.MustParseAddr(src))
		if err != nil || got != "gate "+dst {
			t.Errorf("%s from %s: got %q, %v", dst, src, got, err)
		}
	}
}

// An IPv4-mapped destination is IPv4 on the wire.
func TestMappedIsCaptured(t *testing.T) {
	newWorld(t, nil)
	got, err := ask("[::ffff:8.8.8.8]:443", netip.Addr{})
	if err != nil || got != "gate 8.8.8.8:443" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestMultipathIsCaptured(t *testing.T) {
	newWorld(t, nil)
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, unix.IPPROTO_MPTCP)
	if err != nil {
		t.Skipf("no multipath TCP: %v", err)
	}
	f := os.NewFile(uintptr(fd), "mptcp")
	defer f.Close()
	if err := unix.Connect(fd, &unix.SockaddrInet4{Addr: [4]byte{8, 8, 8, 8}, Port: 443}); err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(f)
	if got := strings.TrimSpace(string(b)); err != nil || got != "gate 8.8.8.8:443" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestLocalServicesAreReached(t *testing.T) {
	newWorld(t, nil)
	for _, at := range []string{"127.0.0.1:8080", "127.1.2.3:8080", "127.255.255.254:1", "127.0.0.1:65535", "[::1]:8080", "[::1]:443"} {
		inner(t, at)
		got, err := ask(at, netip.Addr{})
		if err != nil || got != "inner "+at {
			t.Errorf("%s: got %q, %v", at, got, err)
		}
	}
	inner(t, "0.0.0.0:9000")
	if got, err := ask("0.0.0.0:9000", netip.Addr{}); err != nil || got != "inner 127.0.0.1:9000" {
		t.Errorf("0.0.0.0: got %q, %v", got, err)
	}
	if _, err := ask("127.0.0.1:7", netip.Addr{}); !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("a closed port: %v", err)
	}
}

// Whoever connects to the listener itself is told apart: the destination is
// the listener.
func TestOwnListener(t *testing.T) {
	newWorld(t, nil)
	for _, at := range []string{"127.0.0.1:3129", "[::1]:3129"} {
		if got, err := ask(at, netip.Addr{}); err != nil || got != "gate "+at {
			t.Errorf("%s: got %q, %v", at, got, err)
		}
	}
}

// A second bind would let a program inside answer in our place.
func TestPortsCannotBeShared(t *testing.T) {
	newWorld(t, nil)
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var err error
		return errors.Join(err, c.Control(func(fd uintptr) {
			err = errors.Join(
				unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 1),
				unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1),
			)
		}))
	}}
	for _, at := range []string{"127.0.0.1:53", "127.0.0.53:53", "0.0.0.0:53", "[::1]:53"} {
		if pc, err := lc.ListenPacket(t.Context(), "udp", at); err == nil {
			pc.Close()
			t.Errorf("udp %s was bound a second time", at)
		}
	}
	for _, at := range []string{"127.0.0.1:53", "127.0.0.1:3128", "127.0.0.1:3129", "[::1]:3129"} {
		if ln, err := lc.Listen(t.Context(), "tcp", at); err == nil {
			ln.Close()
			t.Errorf("tcp %s was bound a second time", at)
		}
	}
}

var dnsServers = []string{
	"127.0.0.53:53", "127.0.0.1:53", "8.8.8.8:53", "192.0.2.1:53", "10.1.2.3:53", "169.254.169.253:53",
	"[::1]:53", "[2001:4860:4860::8888]:53", "[fd00::53]:53",
}

// query sends one packet and waits for the reply. The socket is connected, so
// the kernel takes replies only from the address that was asked.
func query(addr string) error {
	d := net.Dialer{Timeout: patience}
	c, err := d.DialContext(context.Background(), "udp", addr)
	if err != nil {
		return err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(patience))
	if _, err := c.Write([]byte("question")); err != nil {
		return err
	}
	b := make([]byte, 64)
	n, err := c.Read(b)
	if err == nil && string(b[:n]) != "question" {
		err = fmt.Errorf("got %q", b[:n])
	}
	return err
}

func TestDNSIsCaptured(t *testing.T) {
	newWorld(t, nil)
	for _, at := range dnsServers {
		if err := query(at); err != nil {
			t.Errorf("udp %s: %v", at, err)
		}
		if got, err := ask(at, netip.Addr{}); err != nil || got != "dns "+at {
			t.Errorf("tcp %s: got %q, %v", at, got, err)
		}
	}
}

// A half-closed connection may be silent for longer than conntrack remembers.
func TestAcceptedConnectionsAreKeptAlive(t *testing.T) {
	d := setup(t, capture.Config{})
	ln, err := net.FileListener(d.Transparent[0])
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := unix.Connect(fd, &unix.SockaddrInet4{Addr: [4]byte{8, 8, 8, 8}, Port: 22}); err != nil {
		t.Fatal(err)
	}
	raw, err := d.Transparent[0].SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	_ = raw.Control(func(listener uintptr) {
		// accept(2) itself: net.Listener sets options of its own.
		accepted, _, err := unix.Accept4(int(listener), unix.SOCK_CLOEXEC)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(accepted)
		on, err := unix.GetsockoptInt(accepted, unix.SOL_SOCKET, unix.SO_KEEPALIVE)
		if err != nil || on != 1 {
			t.Errorf("SO_KEEPALIVE = %d, %v", on, err)
		}
		idle, err := unix.GetsockoptInt(accepted, unix.IPPROTO_TCP, unix.TCP_KEEPIDLE)
		if err != nil || idle != keepIdle {
			t.Errorf("TCP_KEEPIDLE = %d, %v", idle, err)
		}
	})
}

// Each rule is needed: without it what it stops gets through.
func TestWithoutTCPRedirect(t *testing.T) {
	newWorld(t, without("meta l4proto tcp redirect"))
	inner(t, "0.0.0.0:443")
	if got, err := ask("8.8.8.8:443", netip.Addr{}); strings.HasPrefix(got, "gate") {
		t.Errorf("got %q, %v: the rule is not what captures", got, err)
	}
}

func TestWithoutLoopbackExemption(t *testing.T) {
	newWorld(t, without("ip daddr 127.0.0.0/8 accept"))
	inner(t, "127.0.0.1:8080")
	if got, _ := ask("127.0.0.1:8080", netip.Addr{}); strings.HasPrefix(got, "inner") {
		t.Errorf("got %q: the rule is not what exempts", got)
	}
}

// With the listener elsewhere, only the rule can bring DNS to it.
func TestWithoutDNSRedirect(t *testing.T) {
	const elsewhere = 5353
	for _, removed := range []string{"", "udp dport 53", "tcp dport 53"} {
		t.Run("without "+removed, func(t *testing.T) {
			freshNamespace(t)
			link(t)
			r := rules.Capture(elsewhere, testTransparent, false)
			if removed != "" {
				without(removed)(&r)
			}
			apply(t, r)
			at := netip.AddrPortFrom(netip.IPv6Unspecified(), elsewhere)
			serveUDP(t, listenUDP(t, at))
			serveTCP(t, listenTCP(t, at.String()), "dns")
			for _, addr := range dnsServers {
				if err := query(addr); (err == nil) == (removed == "udp dport 53") {
					t.Errorf("udp %s: %v", addr, err)
				}
				got, err := ask(addr, netip.Addr{})
				if (got == "dns "+addr) == (removed == "tcp dport 53") {
					t.Errorf("tcp %s: %q, %v", addr, got, err)
				}
			}
		})
	}
}

//go:build linux

package netns

import (
	"context"
	"net"
	"net/netip"
	"os"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"egressd/netns/capture"
)

// What package capture takes when nothing is reserved.
const (
	dnsPort   = 53
	proxyPort = 3128
	keepIdle  = 25 // seconds
)

// link is capture.Link on this test's thread.
func link(t *testing.T) *capture.Linked {
	t.Helper()
	l, err := capture.Link()
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// listenTCP listens in the namespace of this test's thread.
func listenTCP(t *testing.T, at string) *os.File {
	t.Helper()
	var lc net.ListenConfig
	lc.SetMultipathTCP(false) // SO_ORIGINAL_DST does not work on multipath sockets
	ln, err := lc.Listen(t.Context(), "tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	f, err := ln.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// listenUDP makes a socket as PacketConn wants it.
func listenUDP(t *testing.T, at netip.AddrPort) *os.File {
	t.Helper()
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var err error
		_ = c.Control(func(fd uintptr) {
			if err = unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO, 1); err == nil {
				err = unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_FREEBIND, 1)
			}
		})
		return err
	}}
	pc, err := lc.ListenPacket(context.Background(), "udp", at.String())
	if err != nil {
		t.Fatal(err)
	}
	defer pc.Close()
	f, err := pc.(*net.UDPConn).File()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

package netns

import (
	"fmt"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"
)

// Implementation constants of the listeners.
const (
	backlog = 4096 // the kernel lowers it to net.core.somaxconn

	// Keepalive of accepted connections, seconds. A half-closed connection
	// may be silent for as long as the origin likes, but connection tracking
	// forgets it after a minute (nf_conntrack_tcp_timeout_close_wait), and then
	// nothing translates its addresses. The other end is in the same kernel:
	// a probe is always answered.
	keepIdle     = 25
	keepInterval = 25
)

// listenTCP makes a listening socket in the calling thread's namespace. It is
// plain TCP, not multipath: SO_ORIGINAL_DST does not work on multipath sockets.
func listenTCP(at netip.AddrPort) (*os.File, error) {
	fd, err := boundSocket(unix.SOCK_STREAM, unix.IPPROTO_TCP, at)
	if err != nil {
		return nil, fmt.Errorf("listen on %s (tcp): %w", at, err)
	}
	err = setAll(fd, []sockopt{
		{unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1},
		{unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, keepIdle},
		{unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, keepInterval},
	})
	if err != nil {
		return nil, fmt.Errorf("listen on %s (tcp): %w", at, err)
	}
	if err := unix.Listen(fd, backlog); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("listen on %s (tcp): %w", at, err)
	}
	return os.NewFile(uintptr(fd), "tcp:"+at.String()), nil
}

// listenUDP makes a socket that reports which address each packet was sent to
// (RFC 3542 section 6.1 for IPv6, ip(7) for IPv4).
func listenUDP(at netip.AddrPort) (*os.File, error) {
	fd, err := boundSocket(unix.SOCK_DGRAM, unix.IPPROTO_UDP, at)
	if err != nil {
		return nil, fmt.Errorf("listen on %s (udp): %w", at, err)
	}
	options := []sockopt{
		{unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO, 1},
		{unix.IPPROTO_IPV6, unix.IPV6_FREEBIND, 1}, // reply from addresses no interface has
	}
	if at.Addr().Is4() {
		options = []sockopt{{unix.IPPROTO_IP, unix.IP_PKTINFO, 1}}
	}
	if err := setAll(fd, options); err != nil {
		return nil, fmt.Errorf("listen on %s (udp): %w", at, err)
	}
	return os.NewFile(uintptr(fd), "udp:"+at.String()), nil
}

type sockopt struct{ level, name, value int }

// setAll sets the options, or closes fd.
func setAll(fd int, options []sockopt) error {
	for _, o := range options {
		if err := unix.SetsockoptInt(fd, o.level, o.name, o.value); err != nil {
			unix.Close(fd)
			return fmt.Errorf("socket option %d: %w", o.name, err)
		}
	}
	return nil
}

// boundSocket sets neither SO_REUSEADDR nor SO_REUSEPORT.
//
// Threat: a program inside binds the gate's port a second time and answers
// DNS questions in its place -> without the options on our side the kernel
// refuses the second bind. Nothing is left over.
func boundSocket(kind, proto int, at netip.AddrPort) (int, error) {
	family := unix.AF_INET6
	var sa unix.Sockaddr = &unix.SockaddrInet6{Port: int(at.Port()), Addr: at.Addr().As16()}
	if at.Addr().Is4() {
		family = unix.AF_INET
		sa = &unix.SockaddrInet4{Port: int(at.Port()), Addr: at.Addr().As4()}
	}
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, proto)
	if err != nil {
		return -1, err
	}
	if at.Addr() == netip.IPv6Unspecified() {
		// One socket for both families, whatever net.ipv6.bindv6only says.
		err = unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 0)
	}
	if err == nil {
		err = unix.Bind(fd, sa)
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

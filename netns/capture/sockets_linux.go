package capture

import (
	"fmt"
	"os"
	"strconv"

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

// everywhere is every address, of both families if there are two.
func everywhere(ipv6 bool, port uint16) unix.Sockaddr {
	if ipv6 {
		return &unix.SockaddrInet6{Port: int(port)}
	}
	return &unix.SockaddrInet4{Port: int(port)}
}

func loopback4(port uint16) unix.Sockaddr {
	return &unix.SockaddrInet4{Port: int(port), Addr: [4]byte{127, 0, 0, 1}}
}

func loopback6(port uint16) unix.Sockaddr {
	return &unix.SockaddrInet6{Port: int(port), Addr: [16]byte{15: 1}}
}

// listenTCP makes a listening socket in the calling thread's namespace. It is
// plain TCP, not multipath: SO_ORIGINAL_DST does not work on multipath sockets.
func listenTCP(at unix.Sockaddr) (*os.File, error) {
	fd, err := boundSocket(unix.SOCK_STREAM, unix.IPPROTO_TCP, at)
	if err == nil {
		err = setAll(fd, []sockopt{
			{unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1},
			{unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, keepIdle},
			{unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, keepInterval},
		})
	}
	if err != nil {
		return nil, fmt.Errorf("listen on tcp %s: %w", name(at), err)
	}
	if err := unix.Listen(fd, backlog); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("listen on tcp %s: %w", name(at), err)
	}
	return os.NewFile(uintptr(fd), "tcp "+name(at)), nil
}

// listenUDP makes a socket that reports which address each packet was sent to
// (RFC 3542 section 6.1 for IPv6, ip(7) for IPv4).
func listenUDP(at unix.Sockaddr) (*os.File, error) {
	fd, err := boundSocket(unix.SOCK_DGRAM, unix.IPPROTO_UDP, at)
	if err == nil {
		options := []sockopt{{unix.IPPROTO_IP, unix.IP_PKTINFO, 1}}
		if _, ok := at.(*unix.SockaddrInet6); ok {
			options = []sockopt{
				{unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO, 1},
				{unix.IPPROTO_IPV6, unix.IPV6_FREEBIND, 1}, // reply from addresses no interface has
			}
		}
		err = setAll(fd, options)
	}
	if err != nil {
		return nil, fmt.Errorf("listen on udp %s: %w", name(at), err)
	}
	return os.NewFile(uintptr(fd), "udp "+name(at)), nil
}

// name names an address in errors.
func name(at unix.Sockaddr) string {
	switch a := at.(type) {
	case *unix.SockaddrInet4:
		return "port " + strconv.Itoa(a.Port)
	case *unix.SockaddrInet6:
		return "port " + strconv.Itoa(a.Port) + " (IPv6)"
	}
	return "of an unknown family"
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
func boundSocket(kind, proto int, at unix.Sockaddr) (int, error) {
	family := unix.AF_INET
	v6, ok := at.(*unix.SockaddrInet6)
	if ok {
		family = unix.AF_INET6
	}
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, proto)
	if err != nil {
		return -1, err
	}
	if ok && v6.Addr == [16]byte{} {
		// One socket for both families, whatever net.ipv6.bindv6only says.
		err = unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 0)
	}
	if err == nil {
		err = unix.Bind(fd, at)
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

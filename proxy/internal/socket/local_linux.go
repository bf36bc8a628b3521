package socket

import (
	"errors"
	"net"
	"net/netip"
	"syscall"

	"golang.org/x/sys/unix"
)

// Reachable reports whether connections of this process can arrive at ln at
// all. A listener made in another network namespace cannot be reached from
// here, and 127.0.0.1 over there is not 127.0.0.1 here. In doubt it can.
func Reachable(ln net.Listener) bool {
	sc, ok := ln.(syscall.Conn)
	if !ok {
		return true
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return true
	}
	theirs, theirErr := uint64(0), error(nil)
	if err := raw.Control(func(fd uintptr) { theirs, theirErr = netnsCookie(int(fd)) }); err != nil || theirErr != nil {
		return true
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return true
	}
	defer func() { _ = unix.Close(fd) }() // nothing was sent
	ours, err := netnsCookie(fd)
	return err != nil || ours == theirs
}

// netnsCookie identifies the network namespace of a socket (Linux 5.14).
func netnsCookie(fd int) (uint64, error) {
	return unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
}

// comesHome reports whether the kernel treats a as its own: an interface has it,
// or a route of type local (AnyIP) covers it, at times for a whole range. The
// kernel connects to such an address from that address, or from the loopback. With
// an error it is not known.
func comesHome(a netip.Addr) (bool, error) {
	domain, to := unix.AF_INET6, unix.Sockaddr(&unix.SockaddrInet6{Port: 9, Addr: a.As16()})
	if a.Is4() {
		domain, to = unix.AF_INET, &unix.SockaddrInet4{Port: 9, Addr: a.As4()}
	}
	fd, err := unix.Socket(domain, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if errors.Is(err, unix.EAFNOSUPPORT) {
		return false, nil // nor does a connection go there
	}
	if err != nil {
		return false, err
	}
	defer func() { _ = unix.Close(fd) }() // nothing was sent
	switch err := unix.Connect(fd, to); {
	case errors.Is(err, unix.EPERM): // a hook of a control group or of nftables, which may judge TCP otherwise
		return false, err
	case err != nil:
		return false, nil // nothing goes there
	}
	from, err := unix.Getsockname(fd)
	if err != nil {
		return false, err
	}
	var own netip.Addr
	switch from := from.(type) {
	case *unix.SockaddrInet4:
		own = netip.AddrFrom4(from.Addr)
	case *unix.SockaddrInet6:
		own = netip.AddrFrom16(from.Addr).Unmap()
	}
	return own == a || own.IsLoopback(), nil
}

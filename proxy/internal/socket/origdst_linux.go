package socket

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"
)

// soOriginalDst is SO_ORIGINAL_DST at SOL_IP and IP6T_SO_ORIGINAL_DST at
// SOL_IPV6 (linux/netfilter_ipv4.h, linux/netfilter_ipv6/ip6_tables.h).
const soOriginalDst = 80

var errNotTCP = errors.New("not a TCP connection")

// OriginalDst reports where a captured connection was going before the capture
// rules redirected it; without a redirect, the connection's own local address
// (every address is local if all routes lead to loopback).
func OriginalDst(c net.Conn) (netip.AddrPort, error) {
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return netip.AddrPort{}, errNotTCP
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("original destination: %w", err)
	}
	local := AddrPort(tcp.LocalAddr())
	dst := local
	var optErr error
	err = raw.Control(func(fd uintptr) {
		if local.Addr().Unmap().Is4() {
			dst, optErr = originalDst4(int(fd))
		} else {
			dst, optErr = originalDst6(int(fd))
		}
	})
	switch {
	case err != nil:
		return netip.AddrPort{}, fmt.Errorf("original destination: %w", err)
	case errors.Is(optErr, unix.ENOENT), errors.Is(optErr, unix.ENOPROTOOPT), errors.Is(optErr, unix.EOPNOTSUPP):
		return local, nil // not redirected, or a kernel without address translation
	case optErr != nil:
		return netip.AddrPort{}, fmt.Errorf("original destination: %w", optErr)
	}
	return dst, nil
}

// originalDst4 reads a sockaddr_in, for which IPv6Mreq is large enough.
func originalDst4(fd int) (netip.AddrPort, error) {
	m, err := unix.GetsockoptIPv6Mreq(fd, unix.SOL_IP, soOriginalDst)
	if err != nil {
		return netip.AddrPort{}, err
	}
	b := m.Multiaddr
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte(b[4:8])), binary.BigEndian.Uint16(b[2:4])), nil
}

// originalDst6 reads a sockaddr_in6, for which IPv6MTUInfo is large enough.
func originalDst6(fd int) (netip.AddrPort, error) {
	m, err := unix.GetsockoptIPv6MTUInfo(fd, unix.SOL_IPV6, soOriginalDst)
	if err != nil {
		return netip.AddrPort{}, err
	}
	port := *(*[2]byte)(unsafe.Pointer(&m.Addr.Port)) // network byte order, whatever this machine's is
	return netip.AddrPortFrom(netip.AddrFrom16(m.Addr.Addr), binary.BigEndian.Uint16(port[:])), nil
}

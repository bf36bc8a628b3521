package dnsfilter

import (
	"net"

	"golang.org/x/sys/unix"
)

// freebind lets u send from addresses that are local by route alone (a
// namespace where every address is local), which IPv6 otherwise refuses.
// ip(7) IP_FREEBIND; it needs no capability.
func freebind(u *net.UDPConn) error {
	raw, err := u.SyscallConn()
	if err != nil {
		return err
	}
	var opt error
	err = raw.Control(func(fd uintptr) {
		opt = unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_FREEBIND, 1)
	})
	if err != nil {
		return err
	}
	return opt
}

//go:build !linux

package proxy

import (
	"errors"
	"net"
	"net/netip"
)

// originalDst reports where a captured connection was going. Only Linux can
// say.
func originalDst(net.Conn) (netip.AddrPort, error) {
	return netip.AddrPort{}, errors.New("captured connections need Linux")
}

//go:build !linux

package socket

import (
	"errors"
	"net"
	"net/netip"
)

// OriginalDst reports where a captured connection was going. Only Linux can
// say.
func OriginalDst(net.Conn) (netip.AddrPort, error) {
	return netip.AddrPort{}, errors.New("captured connections need Linux")
}

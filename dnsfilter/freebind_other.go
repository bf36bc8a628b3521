//go:build !linux

package dnsfilter

import (
	"errors"
	"net"
)

// freebind lets u send from addresses that are local by route alone; only
// Linux has them.
func freebind(*net.UDPConn) error { return errors.ErrUnsupported }

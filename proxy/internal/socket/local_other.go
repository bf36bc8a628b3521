//go:build !linux

package socket

import (
	"net"
	"net/netip"
)

// Reachable reports whether connections of this process can arrive at ln at
// all: without network namespaces, always.
func Reachable(net.Listener) bool { return true }

// comesHome reports whether the system treats a as its own: an interface has it.
// Only Linux is known to take further ones for its own.
func comesHome(a netip.Addr) (bool, error) { return onInterface(a) }

//go:build !linux

package socket

import (
	"net"
	"net/netip"
)

// Reachable reports whether connections of this process can arrive at ln at
// all: without network namespaces, always.
func Reachable(net.Listener) bool { return true }

// comesHome reports whether the system treats a as its own although no interface
// has it, which only Linux is known to do.
func comesHome(netip.Addr) bool { return false }

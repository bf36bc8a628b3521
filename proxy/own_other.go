//go:build !linux

package proxy

import (
	"net"
	"net/netip"
)

// reachable reports whether connections of this process can arrive at ln at
// all: without network namespaces, always.
func reachable(net.Listener) bool { return true }

// comesHome reports whether the system treats a as its own although no interface
// has it, which only Linux is known to do.
func comesHome(netip.Addr) bool { return false }

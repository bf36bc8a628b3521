package proxy

import (
	"net"
	"net/netip"
	"slices"
	"sync"

	"egressd/policy"
)

// listening is the set of addresses this Server serves on.
type listening struct {
	mu    sync.RWMutex
	addrs []netip.AddrPort
}

func (l *listening) add(a netip.AddrPort) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.addrs = append(l.addrs, a)
}

func (l *listening) remove(a netip.AddrPort) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.addrs, a); i >= 0 {
		l.addrs = slices.Delete(l.addrs, i, i+1)
	}
}

// isOwn reports whether r leads to one of the gate's own listeners.
//
// Threat: a client asks the gate to connect to the gate, to reach a listener
// meant for others or to make it call itself until it is full -> the literal
// that would be dialled is compared with every listener, wildcard listeners
// with every address of this machine. Left over: a listener behind another
// machine's address translation.
func (s *Server) isOwn(r policy.Request) bool {
	a := r.Addr
	if !a.IsValid() {
		a = r.Host.Addr()
	}
	if !a.IsValid() {
		return false
	}
	a = a.Unmap().WithZone("")
	for _, own := range s.Own {
		if reaches(a, r.Port, own) {
			return true
		}
	}
	s.serving.mu.RLock()
	defer s.serving.mu.RUnlock()
	for _, own := range s.serving.addrs {
		if reaches(a, r.Port, own) {
			return true
		}
	}
	return false
}

// reaches reports whether a connection to a:port arrives at the listener own.
func reaches(a netip.Addr, port uint16, own netip.AddrPort) bool {
	if port != own.Port() || port == 0 {
		return false
	}
	listener := own.Addr().Unmap().WithZone("")
	switch {
	case a == listener:
		return true
	case a.IsUnspecified(): // connects to loopback
		return listener.IsLoopback() || listener.IsUnspecified()
	case listener.IsUnspecified():
		return isLocal(a)
	}
	return false
}

// isLocal reports whether a is an address of this machine. If that cannot be
// found out, it reports true.
func isLocal(a netip.Addr) bool {
	if a.IsLoopback() {
		return true
	}
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return true
	}
	for _, ifa := range addrs {
		if p, err := netip.ParsePrefix(ifa.String()); err == nil && p.Addr().Unmap().WithZone("") == a {
			return true
		}
	}
	return comesHome(a)
}

package socket

import (
	"net"
	"net/netip"
	"slices"
	"sync"
)

// Listeners is a set of addresses that this process listens on. The zero
// Listeners is empty. Safe for concurrent use.
type Listeners struct {
	mu    sync.RWMutex
	addrs []netip.AddrPort
}

// Add adds the listener a. The same address may be added more than once.
func (l *Listeners) Add(a netip.AddrPort) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.addrs = append(l.addrs, a)
}

// Remove takes back one Add of a.
func (l *Listeners) Remove(a netip.AddrPort) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.addrs, a); i >= 0 {
		l.addrs = slices.Delete(l.addrs, i, i+1)
	}
}

// Reached reports whether a connection to a:port arrives at one of the listeners.
func (l *Listeners) Reached(a netip.Addr, port uint16) bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	for _, own := range l.addrs {
		if Reaches(a, port, own) {
			return true
		}
	}
	return false
}

// Len reports how many addresses there are.
func (l *Listeners) Len() int {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return len(l.addrs)
}

// Reaches reports whether a connection to a:port arrives at the listener own. The
// zone of a does not count. A wildcard listener is reached at every address of
// this machine; if those cannot be found out, at every address.
func Reaches(a netip.Addr, port uint16, own netip.AddrPort) bool {
	if port != own.Port() || port == 0 {
		return false
	}
	a = a.Unmap().WithZone("")
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

// Local reports whether a connection of this process to a would stay on this
// machine. It asks the system each time, which costs a few system calls and is
// never out of date. With an error it is not known.
//
// Where every address is local by a route (AnyIP over everything, as in a lab), that
// says nothing about one: there the addresses of interfaces count.
func Local(a netip.Addr) (bool, error) {
	a = a.Unmap().WithZone("")
	if a.IsLoopback() || a.IsUnspecified() {
		return true, nil
	}
	if home, err := comesHome(a); !home || err != nil {
		return home, err
	}
	nobodys := netip.AddrFrom4([4]byte{240, 0, 0, 1}) // RFC 1112: reserved
	if a.Is6() {
		nobodys = netip.AddrFrom16([16]byte{0: 1, 15: 1}) // 100::1, RFC 6666: discarded
	}
	if all, err := comesHome(nobodys); !all || err != nil {
		return true, err
	}
	return onInterface(a)
}

// isLocal reports whether a is an address of this machine. If that cannot be
// found out, it reports true.
func isLocal(a netip.Addr) bool {
	if a.IsLoopback() {
		return true
	}
	if on, err := onInterface(a); on || err != nil {
		return true
	}
	home, err := comesHome(a)
	return home || err != nil
}

// onInterface reports whether an interface has a.
func onInterface(a netip.Addr) (bool, error) {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return false, err
	}
	for _, ifa := range addrs {
		if p, err := netip.ParsePrefix(ifa.String()); err == nil && p.Addr().Unmap().WithZone("") == a {
			return true, nil
		}
	}
	return false, nil
}

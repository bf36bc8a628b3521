package policy

import "net/netip"

// Host is one canonical host: a DNS name in lower-case A-labels without the
// root dot, or an IP address. Only [ParseHost] and [HostFromAddr] make one, so
// holding a Host means the spelling is settled. Hosts compare with ==; the zero
// Host stands for "no host" and matches no rule.
type Host struct {
	name string
	addr netip.Addr
}

// HostFromAddr reports the Host of an address literal. IPv4-mapped addresses
// become the IPv4 inside and zones are dropped.
func HostFromAddr(a netip.Addr) Host { return Host{addr: a.Unmap().WithZone("")} }

// Name reports the DNS name, or "" when h is an address or zero.
func (h Host) Name() string { return h.name }

// Addr reports the address, or the zero Addr when h is a name or zero.
func (h Host) Addr() netip.Addr { return h.addr }

// IsZero reports whether h is no host at all.
func (h Host) IsZero() bool { return h.name == "" && !h.addr.IsValid() }

// String reports the canonical spelling, without brackets.
func (h Host) String() string {
	if h.addr.IsValid() {
		return h.addr.String()
	}
	return h.name
}

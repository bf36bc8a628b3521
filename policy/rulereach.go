package policy

import (
	"net/netip"
	"slices"
)

// Reach is what one rule is about, for whoever must say it in another
// system's words. It decides nothing: that is Decide.
type Reach struct {
	Name   string       // a DNS name; "" for a rule about addresses
	Apex   bool         // Name itself
	Below  bool         // the names below it, at any depth
	Prefix netip.Prefix // of a rule about addresses

	PortsListed bool // the rule says which ports; else an allow rule is about 443 and 80, a deny rule about all
	AnyPort     bool // all of them
	Raw         bool // nothing is asked of the wire
	Requests    bool // the rule is about methods or paths
}

// Reach reports what r is about.
func (r *Rule) Reach() Reach {
	if r.parsed == nil && !plain(r.Text) {
		return Reach{} // not a compiled rule
	}
	p := r.pattern()
	return Reach{
		Name: p.name, Apex: p.scope == scopeExact || p.scope == scopeTree, Below: p.scope == scopeBelow || p.scope == scopeTree,
		Prefix: p.prefix, PortsListed: p.listed, AnyPort: slices.Equal(p.ports, anyPort),
		Raw: p.raw, Requests: p.path != nil,
	}
}

// HasHosts reports whether the policy gives names addresses of its own.
func (p *Policy) HasHosts() bool {
	for ; p != nil; p = p.ceiling {
		if len(p.static) > 0 {
			return true
		}
	}
	return false
}

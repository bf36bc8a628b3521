package policy

import (
	"net/netip"
	"slices"

	"egressd/policy/internal/grammar"
	"egressd/policy/internal/names"
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
	if r.parsed == nil && !names.Plain(r.Text) {
		return Reach{} // not a compiled rule
	}
	p := r.pattern()
	return Reach{
		Name: p.Name, Apex: p.Scope == grammar.Exact || p.Scope == grammar.Tree, Below: p.Scope == grammar.Below || p.Scope == grammar.Tree,
		Prefix: p.Prefix, PortsListed: p.Listed, AnyPort: slices.Equal(p.Ports, grammar.AnyPort),
		Raw: p.Raw, Requests: p.Path != nil,
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

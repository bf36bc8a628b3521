package policy

import (
	"net/netip"
	"slices"
	"strings"
)

// checkReachable refuses an allow rule that can never match: one for an
// address nobody can dial, or one that deny rules of the same document cover
// whole. A deny in another document is a deliberate override.
func (c *compiler) checkReachable(r *Rule, p pattern, firstDeny int) {
	if p.scope == scopeAddr {
		if why := undialable(p.prefix); why != "" {
			c.errs.add(r.Pos, "remove it", "allow rule %q can never match: it is %s", r.Text, why)
			return
		}
	}
	if deny := c.shadow(p, firstDeny); deny != nil {
		c.errs.add(r.Pos, "remove one of the two", "allow rule %q can never match: deny rule %q (%s) covers all of it", r.Text, deny.Text, deny.Pos)
	}
}

// undialable says why no TCP connection can go to any address of pre.
func undialable(pre netip.Prefix) string {
	a := pre.Addr()
	switch {
	case a.IsMulticast() && (a.Is4() && pre.Bits() >= 4 || a.Is6() && pre.Bits() >= 8):
		return "multicast, which TCP cannot reach"
	case a.IsUnspecified() && pre.IsSingleIP():
		return "the unspecified address, which is not a destination"
	case a.Is4() && a.As4()[0] == 0 && pre.Bits() >= 8:
		return "in 0.0.0.0/8, which is not a destination"
	case a == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return "the broadcast address, which TCP cannot reach"
	}
	return ""
}

// shadow reports a deny rule (of those filed from firstDeny on) that covers
// all hosts and ports of p.
func (c *compiler) shadow(p pattern, firstDeny int) *Rule {
	ix := c.p.deny
	if len(ix.rules) == firstDeny {
		return nil
	}
	covers := func(head int32, ok bool) *Rule {
		for i := head; ok && i >= 0; i = ix.rules[i].next {
			d := &ix.rules[i]
			if int(i) >= firstDeny && coversPorts(d.ports, p.ports) && coversPath(d.path, p.path) {
				return d.rule
			}
		}
		return nil
	}
	if p.scope == scopeAddr {
		for bits := p.prefix.Bits(); bits >= 0; bits-- {
			pre, _ := p.prefix.Addr().Prefix(bits) // bits fit: they count down from a valid prefix
			head, ok := ix.addrs[pre]
			if r := covers(head, ok); r != nil {
				return r
			}
		}
		return nil
	}
	// The apex half, then the subdomain half.
	var apex *Rule
	if p.scope != scopeBelow {
		head, ok := ix.exact[p.name]
		apex = covers(head, ok)
	}
	parent := p.name
	if p.scope == scopeExact {
		_, parent, _ = strings.Cut(p.name, ".")
	}
	for ; parent != ""; _, parent, _ = strings.Cut(parent, ".") {
		head, ok := ix.below[parent]
		r := covers(head, ok)
		if r == nil {
			continue
		}
		if p.scope == scopeTree && parent == p.name && apex == nil {
			continue // *.x denied, x itself is not
		}
		return r
	}
	if p.scope == scopeExact {
		return apex
	}
	return nil
}

func coversPorts(outer, inner ports) bool {
	return !slices.ContainsFunc(inner, func(want portRange) bool {
		return !slices.ContainsFunc(outer, func(have portRange) bool { return have.lo <= want.lo && want.hi <= have.hi })
	})
}

func coversPath(outer, inner *pathRule) bool {
	if outer == nil {
		return true
	}
	if inner == nil || outer.path != "/**" && outer.path != inner.path {
		return false
	}
	if len(outer.methods) == 0 {
		return true
	}
	return len(inner.methods) > 0 && !slices.ContainsFunc(inner.methods, func(m string) bool { return !outer.hasMethod(m) })
}

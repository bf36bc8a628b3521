package policy

import (
	"strings"

	"egressd/policy/internal/grammar"
)

// checkReachable refuses an allow rule that can never match: one for an
// address nobody can dial, or one that deny rules of the same document cover
// whole. A deny in another document is a deliberate override.
func (c *compiler) checkReachable(r *Rule, p grammar.Pattern, firstDeny int) {
	if !c.checkDialable(r, p) {
		return
	}
	if deny := c.shadow(p, firstDeny); deny != nil {
		c.errs.add(r.Pos, "remove one of the two", "allow rule %q can never match: deny rule %q (%s) covers all of it", r.Text, deny.Text, deny.Pos)
	}
}

// checkDialable refuses an allow rule for an address nobody can dial.
func (c *compiler) checkDialable(r *Rule, p grammar.Pattern) bool {
	if p.Scope != grammar.Addr {
		return true
	}
	why := grammar.Undialable(p.Prefix)
	if why != "" {
		c.errs.add(r.Pos, "remove it", "allow rule %q can never match: it is %s", r.Text, why)
	}
	return why == ""
}

// shadow reports a deny rule (of those filed from firstDeny on) that covers
// all hosts and ports of p.
func (c *compiler) shadow(p grammar.Pattern, firstDeny int) *Rule {
	ix := c.p.deny
	if len(ix.rules) == firstDeny {
		return nil
	}
	covers := func(head int32, ok bool) *Rule {
		for i := head; ok && i >= 0; i = ix.rules[i].next {
			d := &ix.rules[i]
			if int(i) >= firstDeny && grammar.CoversPorts(d.ports, p.Ports) && grammar.CoversPath(d.path, p.Path) {
				return d.rule
			}
		}
		return nil
	}
	if p.Scope == grammar.Addr {
		for bits := p.Prefix.Bits(); bits >= 0; bits-- {
			pre, _ := p.Prefix.Addr().Prefix(bits) // bits fit: they count down from a valid prefix
			head, ok := ix.addrs[pre]
			if r := covers(head, ok); r != nil {
				return r
			}
		}
		return nil
	}
	// The apex half, then the subdomain half.
	var apex *Rule
	if p.Scope != grammar.Below {
		head, ok := ix.exact[p.Name]
		apex = covers(head, ok)
	}
	parent := p.Name
	if p.Scope == grammar.Exact {
		_, parent, _ = strings.Cut(p.Name, ".")
	}
	for ; parent != ""; _, parent, _ = strings.Cut(parent, ".") {
		head, ok := ix.below[parent]
		r := covers(head, ok)
		if r == nil {
			continue
		}
		if p.Scope == grammar.Tree && parent == p.Name && apex == nil {
			continue // *.x denied, x itself is not
		}
		return r
	}
	if p.Scope == grammar.Exact {
		return apex
	}
	return nil
}

package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/netip"
	"slices"

	"egressd/policy/files"
)

// Under reports p narrowed by ceiling, the policy of whoever lets p in: the
// result allows only what p allows and the ceiling allows, at every look. What
// the two ask for adds up (TLS, HTTP, interception, requests judged by path);
// of limits the smaller counts; p audits only where the ceiling audits, too;
// DNS is forwarded only where both say so, to the ceiling's servers; flows leave
// through the ceiling's upstream proxy, or directly if it has none; hosts
// entries of the ceiling count for names that p allows and has none for: where
// such a name leads is the word of the ceiling's owner.
//
// What p allows and the ceiling does not is denied with [ReasonCeiling]: no
// rule of p helps, the ceiling's owner must change it. A nil or zero p or
// ceiling denies everything.
//
// Threat: a session brings hosts entries, DNS servers or an upstream proxy of its
// own, so that a name the ceiling allows leads to a machine of the session's
// choice -> its servers are not asked, its proxy is not used, and an address from its hosts entries passes only
// where the ceiling itself has that entry or a rule for that address. Left
// over: nothing.
func (p *Policy) Under(ceiling *Policy) *Policy {
	if p == nil || !p.loaded || ceiling == nil || !ceiling.loaded {
		return nil
	}
	own := *p
	if p.ceiling != nil {
		ceiling = p.ceiling.Under(ceiling)
	}
	own.ceiling = ceiling
	own.audit = p.audit && ceiling.audit
	own.limits = p.limits.stricter(ceiling.limits)
	if own.dns.Mode != ceiling.dns.Mode {
		own.dns.Mode = DNSSynthetic
	}
	own.upstream = ceiling.upstream
	own.dns.Upstreams = slices.Clone(ceiling.dns.Upstreams)
	own.digest = lazyDigest(func() string {
		sum := sha256.New()
		io.WriteString(sum, "egressd policy 1 under\n"+p.Digest()+"\n"+ceiling.Digest()+"\n")
		return "sha256:" + hex.EncodeToString(sum.Sum(nil))
	})
	return &own
}

// narrow puts the ceiling's word to d, which allows r.
func (p *Policy) narrow(r *Request, d Decision) Decision {
	c := p.ceiling.Decide(*r)
	if c.Allowed() && r.Addr.IsValid() && p.isStatic(r.Host, r.Addr.Unmap().WithZone("")) {
		c = p.ceiling.judgeStatic(r, c)
	}
	switch {
	case c.Allowed():
	case c.Reason.Class() == ClassDenied:
		return Decision{Reason: ReasonCeiling, Rule: c.Rule}
	default:
		return c // malformed: nobody's rules help
	}
	if c.Verdict == Intercept {
		d.Verdict = Intercept
	}
	d.Needs = stricterNeeds(d.Needs, c.Needs)
	if c.Audit && !d.Audit {
		d.Audit, d.Reason, d.Rule = true, ReasonCeiling, c.Rule
	}
	return d
}

// judgeStatic looks at an address that the hosts entries of a session lead
// r.Host to; d is this policy's word on the rest.
func (p *Policy) judgeStatic(r *Request, d Decision) Decision {
	a := r.Addr.Unmap().WithZone("")
	if p.hasStatic(r.Host, a) {
		return d
	}
	literal := p.Decide(Request{Host: Host{addr: a}, Port: r.Port})
	if !literal.Allowed() {
		return Decision{Reason: ReasonIPProhibited, Rule: literal.Rule}
	}
	if literal.Audit && !d.Audit {
		d.Audit, d.Reason, d.Rule = true, literal.Reason, literal.Rule
	}
	return d
}

// hasStatic reports whether p and every ceiling above it list a for h.
func (p *Policy) hasStatic(h Host, a netip.Addr) bool {
	for ; p != nil; p = p.ceiling {
		if !p.isStatic(h, a) {
			return false
		}
	}
	return true
}

// stricterNeeds reports which of two needs asks for more. Needs that exclude
// each other (TLS here, HTTP there) leave nothing that both would allow.
func stricterNeeds(a, b Wire) Wire {
	for _, w := range [...]Wire{WireTLS, WireHTTP, WireOther} {
		if a == w || b == w {
			return w
		}
	}
	return WireUnseen
}

// Tightening reports what of d can only narrow a policy that it is compiled with: its
// deny rules, the paths it hides, and its limits, of which the smaller counts wherever
// they stand. d may come from anybody: a repository that was just cloned.
//
// Threat: a repository carries a policy file that allows its author's host, leads an
// allowed name to it by a hosts entry, another resolver or an upstream proxy, has a
// secret sent there, turns audit on, or shows a path that is hidden -> none of that is
// in the result. Left over: it can deny what the person's own policy allows.
func (d *Document) Tightening() *Document {
	return &Document{Deny: d.Deny, Files: files.Section{Hide: d.Files.Hide}, Limits: d.Limits, Stricter: true}
}

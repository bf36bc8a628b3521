package policy

import (
	"net/netip"
	"slices"

	"egressd/policy/internal/grammar"
	"egressd/policy/internal/pathmatch"
)

// found is what the rules say about one host and port.
type found struct {
	deny  *compiled // deny rule about the whole host
	raw   *compiled // allow rule with raw:
	host  *compiled // allow rule about the whole host
	path  *compiled // allow rule with a path
	paths bool      // a path rule, allow or deny, covers host and port
	other *compiled // allow rule about the host, for other ports only
}

// earliest keeps the rule that stands first in its list.
func earliest(a, b *compiled) *compiled {
	if a == nil || b.rule.Index < a.rule.Index {
		return b
	}
	return a
}

// lookup gathers what the rules say about h and port.
func (p *Policy) lookup(h Host, port uint16) found {
	var f found
	for c := p.deny.find(h); c.next(); {
		switch r := c.rule; {
		case !r.ports.Has(port):
		case r.path != nil:
			f.paths = true
		default:
			f.deny = earliest(f.deny, r)
		}
	}
	for c := p.allow.find(h); c.next(); {
		switch r := c.rule; {
		case !r.ports.Has(port):
			f.other = earliest(f.other, r)
		case r.path != nil:
			f.paths = true
			f.path = earliest(f.path, r)
		case r.raw:
			f.raw = earliest(f.raw, r)
		default:
			f.host = earliest(f.host, r)
		}
	}
	return f
}

// judge makes one check after the other; the first denial ends it.
func (p *Policy) judge(r *Request) Decision {
	if r.Host.IsZero() {
		return Decision{Reason: ReasonMalformed}
	}
	if r.Port == 0 {
		return p.judgeAnyPort(r)
	}
	f := p.lookup(r.Host, r.Port)
	d := p.judgeHost(r, &f)
	if d.Allowed() && r.Addr.IsValid() {
		d = p.judgeAddr(r, d)
	}
	if d.Allowed() && r.Wire != WireUnseen {
		d = judgeWire(r, d)
	}
	if d.Allowed() && r.Method != "" {
		d = p.judgeHead(r, &f, d)
	}
	if d.Allowed() && r.Method != "" && f.paths {
		d = p.judgeRequest(r, &f, d)
	} else if d.Verdict == Intercept && r.Method != "" {
		d.Verdict = Allow // only a secret asked for interception
	}
	return d
}

// judgeHost makes the first check: by host and port alone.
func (p *Policy) judgeHost(r *Request, f *found) Decision {
	d := Decision{Verdict: Allow, Reason: ReasonAllowed, Needs: WireOther}
	switch r.Port {
	case 443:
		d.Needs = WireTLS
	case 80:
		d.Needs = WireHTTP
	}
	switch {
	case f.deny != nil:
		return Decision{Reason: ReasonDeniedByRule, Rule: f.deny.rule}
	case f.raw != nil:
		d.Rule, d.Needs = f.raw.rule, WireUnseen
	case f.host != nil:
		d.Rule = f.host.rule
	case f.path != nil:
		d.Rule = f.path.rule
	case f.other != nil:
		return Decision{Reason: ReasonPortNotListed, Rule: f.other.rule}
	case r.Host.addr.IsValid() && ClassifyAddr(r.Host.addr) != "":
		return Decision{Reason: ReasonIPProhibited}
	default:
		return Decision{Reason: ReasonHostNotListed}
	}
	if a := r.Host.addr; a.IsValid() && ClassifyAddr(a) != "" && !p.addrNamed(a, r.Port, true) {
		return Decision{Reason: ReasonIPProhibited, Rule: d.Rule}
	}
	// Threat: raw: beside a path rule would carry the request past the rule.
	// Interception wins.
	if f.paths || p.secretHosts[target{r.Host, r.Port}] {
		d.Verdict, d.Needs = Intercept, WireTLS
	}
	return d
}

// judgeAddr makes the second check: of the address about to be dialled.
//
// Threat: an allowed name resolves to an address of the machine that dials, and
// so reaches its servers from within, past its firewall -> such an address passes
// only where a rule for it alone or a hosts entry of this name says so. Left over:
// an address that another machine translates to this one.
func (p *Policy) judgeAddr(r *Request, d Decision) Decision {
	a := r.Addr.Unmap().WithZone("")
	if r.Host.addr.IsValid() {
		if a != r.Host.addr {
			return Decision{Reason: ReasonIPProhibited, Rule: d.Rule}
		}
		return d // judged as the host
	}
	for c := p.deny.find(Host{addr: a}); c.next(); {
		rule := c.rule
		// A DNS question (port 0) is refused only where no port is left.
		if rule.path == nil && (rule.ports.Has(r.Port) || r.Port == 0 && rule.ports[0] == grammar.AnyPort[0]) {
			return Decision{Reason: ReasonDeniedByRule, Rule: rule.rule}
		}
	}
	if ClassifyAddr(a) == "" && !r.Local || p.isStatic(r.Host, a) || p.addrNamed(a, r.Port, false) ||
		!r.Local && p.intranet.Has(r.Host.name, a) {
		return d
	}
	return Decision{Reason: ReasonIPProhibited, Rule: d.Rule}
}

// addrNamed reports whether an allow rule names the special-purpose or local
// address a with this port (0: any port). Path rules count for a literal host
// only.
func (p *Policy) addrNamed(a netip.Addr, port uint16, paths bool) bool {
	for c := p.allow.find(Host{addr: a}); c.next(); {
		r := c.rule
		if (r.special || r.single) && (paths || r.path == nil) && (port == 0 || r.ports.Has(port)) {
			return true
		}
	}
	return false
}

// isStatic reports whether a hosts entry of h lists a: one of p's, or where p has
// none for h, one of its ceiling's, as in Static.
func (p *Policy) isStatic(h Host, a netip.Addr) bool {
	own, ok := p.static[h]
	if !ok && p.ceiling != nil {
		return p.ceiling.isStatic(h, a)
	}
	return slices.Contains(own, a)
}

// judgeWire makes the third check: what the client speaks, and which host it
// names there. d.Needs says what the port asks for.
//
// Threat: domain fronting. A client asks for an allowed host and then names
// another one in its SNI or Host, inside the connection where the origin's
// front end obeys it -> both names must be the judged one, also the Host of a
// request inside intercepted TLS, whatever the rule. Left over: ECH, whose
// inner name nobody can see; its outer name is held to the same rule.
func judgeWire(r *Request, d Decision) Decision {
	reason := ReasonAllowed
	switch {
	case r.Wire >= WireBad:
		reason = ReasonMalformed
	case r.Wire == WireTLS && r.Method != "" && !r.hostAgrees():
		reason = ReasonHostMismatch
	case d.Needs == WireUnseen:
		return d
	case r.Wire == WireTLS && d.Needs == WireHTTP:
		reason = ReasonNotHTTP
	case r.Wire == WireTLS && r.Host.addr.IsValid():
		// An address has no SNI; a client that sends one names something else.
		if !r.SNI.IsZero() {
			reason = ReasonSNIMismatch
		}
	case r.Wire == WireTLS:
		if r.SNI != r.Host {
			reason = ReasonSNIMismatch
		}
	case d.Needs == WireTLS:
		reason = ReasonNotTLS
	case r.Wire == WireHTTP:
		absentIsFine := d.Needs == WireOther && r.HTTPHost.IsZero()
		if r.HTTPHost != r.Host && !absentIsFine || r.HTTPPort != 0 && r.HTTPPort != r.Port {
			reason = ReasonHostMismatch
		}
	case d.Needs == WireHTTP:
		reason = ReasonNotHTTP
	}
	if reason != ReasonAllowed {
		return Decision{Reason: reason, Rule: d.Rule}
	}
	return d
}

// hostAgrees reports whether the Host of the HTTP request is the judged
// authority. A Host without a port agrees with every port; no Host agrees with
// none.
func (r *Request) hostAgrees() bool {
	return r.HTTPHost == r.Host && (r.HTTPPort == 0 || r.HTTPPort == r.Port)
}

// judgeRequest makes the fourth check: of one HTTP request to a host that path
// rules cover.
func (p *Policy) judgeRequest(r *Request, f *found, d Decision) Decision {
	if !pathmatch.Clean(r.Path) {
		return Decision{Reason: ReasonMalformed, Rule: d.Rule}
	}
	if deny := p.matchingDeny(r); deny != nil {
		return Decision{Reason: ReasonDeniedByRule, Rule: deny.rule}
	}
	d.Verdict = Allow
	if f.raw != nil || f.host != nil {
		return d
	}
	var hit, near *compiled
	for c := p.allow.find(r.Host); c.next(); {
		rule := c.rule
		if rule.path == nil || !rule.ports.Has(r.Port) || !rule.path.Allows(r.Path) {
			continue
		}
		if rule.path.HasMethod(r.Method) {
			hit = earliest(hit, rule)
		} else {
			near = earliest(near, rule)
		}
	}
	switch {
	case hit != nil:
		d.Rule = hit.rule
		return d
	case near != nil:
		return Decision{Reason: ReasonMethodNotListed, Rule: near.rule}
	}
	return Decision{Reason: ReasonPathNotListed, Rule: d.Rule}
}

// matchingDeny reports the first deny rule with a path that covers r, or nil.
func (p *Policy) matchingDeny(r *Request) (hit *compiled) {
	for c := p.deny.find(r.Host); c.next(); {
		rule := c.rule
		if rule.path != nil && rule.ports.Has(r.Port) && rule.path.Forbids(r.Method, r.Path) {
			hit = earliest(hit, rule)
		}
	}
	return hit
}

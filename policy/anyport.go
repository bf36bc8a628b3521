package policy

import "egressd/policy/internal/grammar"

// judgeAnyPort answers a DNS question: may any port of this host be reached?
// A question has no wire and no request, so either of them is malformed.
func (p *Policy) judgeAnyPort(r *Request) Decision {
	if r.Wire != WireUnseen || r.Method != "" {
		return Decision{Reason: ReasonMalformed}
	}
	var open, shut *compiled // allow rules of which a port is left, and of which none is
	for c := p.allow.find(r.Host); c.next(); {
		rule := c.rule
		if p.deniedEverywhere(r.Host, rule.ports) {
			shut = earliest(shut, rule)
		} else {
			open = earliest(open, rule)
		}
	}
	a := r.Host.addr
	switch {
	case open != nil && a.IsValid() && ClassifyAddr(a) != "" && !p.addrNamed(a, 0, true):
		return Decision{Reason: ReasonIPProhibited, Rule: open.rule}
	case open != nil && r.Addr.IsValid():
		return p.judgeAddr(r, Decision{Verdict: Allow, Reason: ReasonAllowed, Rule: open.rule})
	case open != nil:
		return Decision{Verdict: Allow, Reason: ReasonAllowed, Rule: open.rule}
	}
	if p.builtinHosts(r) {
		return Decision{Verdict: Allow, Reason: ReasonAllowed}
	}
	deny := p.denyRule(r.Host)
	switch {
	case shut != nil || deny != nil:
		return Decision{Reason: ReasonDeniedByRule, Rule: deny}
	case a.IsValid() && ClassifyAddr(a) != "":
		return Decision{Reason: ReasonIPProhibited}
	}
	return Decision{Reason: ReasonHostNotListed}
}

// builtinHosts reports whether the hosts entry that every policy has covers r:
// localhost is the client's own loopback. A hosts entry of the policy replaces
// it, and a deny rule for all its ports beats it.
//
// Threat: a client asks a door for localhost, and means the gate's own loopback
// -> the entry answers the DNS question alone, which names no port and no
// address; a connection still needs a rule, and an address its own. Left over:
// nothing.
func (p *Policy) builtinHosts(r *Request) bool {
	return r.Host.IsLocalhost() && !r.Addr.IsValid() && len(p.static[r.Host]) == 0 && !p.deniedEverywhere(r.Host, grammar.AnyPort)
}

// denyRule reports the first deny rule about the whole of h, whatever its ports.
func (p *Policy) denyRule(h Host) *Rule {
	var first *compiled
	for c := p.deny.find(h); c.next(); {
		if c.rule.path == nil {
			first = earliest(first, c.rule)
		}
	}
	if first == nil {
		return nil
	}
	return first.rule
}

// deniedEverywhere reports whether deny rules cover every port of ps.
func (p *Policy) deniedEverywhere(h Host, ps grammar.Ports) bool {
	for _, want := range ps {
		for port := int(want.Lo); port <= int(want.Hi); {
			end := p.deniedUntil(h, uint16(port))
			if end == 0 {
				return false
			}
			port = int(end) + 1
		}
	}
	return true
}

// deniedUntil reports the last port of the longest denied run that one deny
// rule gives from port on, 0 when port is not denied.
func (p *Policy) deniedUntil(h Host, port uint16) (end uint16) {
	for c := p.deny.find(h); c.next(); {
		if c.rule.path != nil {
			continue
		}
		for _, have := range c.rule.ports {
			if have.Lo <= port && port <= have.Hi {
				end = max(end, have.Hi)
			}
		}
	}
	return end
}

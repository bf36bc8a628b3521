package policy

import "net/netip"

// Verdict is what a door must do. The zero Verdict is Deny.
type Verdict uint8

const (
	Deny      Verdict = iota // refuse, in the door's own words
	Allow                    // go on
	Intercept                // terminate TLS and judge each request inside by method and path
)

// Wire is what a client has been seen to speak on a flow. The zero Wire means
// "not seen yet"; it is never a wildcard.
type Wire uint8

const (
	WireUnseen Wire = iota
	WireTLS         // a well-formed ClientHello; Request.Server is its SNI, zero when absent
	WireHTTP        // an HTTP/1 request; Request.Server is its Host
	WireOther       // bytes that are neither
	WireBad         // TLS or HTTP whose name cannot be read (malformed, an odd spelling); denied everywhere
)

// Request is one question: may this flow go there? Doors fill in what they
// know and ask again as they learn more; a later look may deny what an earlier
// one allowed, never the reverse. Request has no field for the door, so doors
// cannot disagree.
type Request struct {
	Host Host   // the judged destination: a name or a literal address
	Port uint16 // 0 only when a DNS question is judged: "is any port of this host reachable?"

	Addr netip.Addr // second look: the address about to be dialled for Host; zero before resolution

	Wire       Wire   // third look: what the client speaks
	Server     Host   // the SNI (WireTLS) or Host (WireHTTP) the client named; zero when absent
	ServerPort uint16 // the port in an HTTP Host; 0 when not stated

	Method string // fourth look, when the request itself can be seen; "" before
	Path   string // origin-form path as sent, percent-encoding untouched, without the query
}

// Decision answers a Request. The zero Decision denies.
type Decision struct {
	Verdict Verdict
	Reason  Reason
	Rule    *Rule // the rule that decided; nil when none did. Never modify it

	// Needs is the fact the door must still bring (as Request.Wire with
	// Request.Server) and have allowed before it relays a byte upstream:
	// WireTLS (port 443), WireHTTP (port 80: every request), WireOther ("look
	// at the first bytes; where they are TLS, its SNI must match": other
	// ports), or WireUnseen (raw: rules: nothing).
	Needs Wire

	// Audit marks a flow that is allowed only because the policy audits;
	// Reason then says why it would have been denied.
	Audit bool
}

// Allowed reports whether the flow may go on (Allow or Intercept).
func (d Decision) Allowed() bool { return d.Verdict == Allow || d.Verdict == Intercept }

// Decide answers r. It allocates nothing. A nil or zero Policy denies with
// ReasonNoPolicy. Safe for concurrent use.
func (p *Policy) Decide(r Request) Decision {
	if p == nil || !p.loaded {
		return Decision{}
	}
	d := p.judge(&r)
	if d.Allowed() || !p.audit || !auditable(d.Reason) {
		return d
	}
	return Decision{Verdict: Allow, Reason: d.Reason, Rule: d.Rule, Audit: true}
}

// auditable reports whether an auditing policy lets this denial pass. What
// cannot be read, and what would loop, never passes.
func auditable(r Reason) bool {
	return r.Class() == ClassDenied && r != ReasonNoPolicy && r != ReasonLoop
}

// DecideAddrs takes the second look at every answer for r.Host: one denied
// address denies them all. No addresses: ReasonNotFound.
//
// Threat: a resolver answers one public and one private address, and whoever
// dials picks. Nothing is picked: the private answer denies the name.
func (p *Policy) DecideAddrs(r Request, addrs []netip.Addr) Decision {
	r.Addr = netip.Addr{}
	d := p.Decide(r)
	if !d.Allowed() {
		return d
	}
	if len(addrs) == 0 {
		return Decision{Reason: ReasonNotFound, Rule: d.Rule}
	}
	for _, a := range addrs {
		if !a.IsValid() {
			return Decision{Reason: ReasonIPProhibited, Rule: d.Rule}
		}
		r.Addr = a
		one := p.Decide(r)
		if !one.Allowed() {
			return one
		}
		if !d.Audit {
			d = one // the first audited address explains the whole
		}
	}
	return d
}

// found is what the rules say about one host and port.
type found struct {
	deny  *compiled // a deny rule covers host and port
	raw   *compiled // raw: rule
	host  *compiled // rule about the whole host
	path  *compiled // allow rule with a path
	paths bool      // any path rule, allow or deny, covers host and port
	other *compiled // an allow rule names the host, for other ports only
}

// earliest keeps the rule that stands first in its list.
func earliest(a, b *compiled) *compiled {
	if a == nil || b.rule.Index < a.rule.Index {
		return b
	}
	return a
}

func (p *Policy) lookup(h Host, port uint16) found {
	var f found
	for c := p.deny.find(h); ; {
		r := c.next()
		if r == nil {
			break
		}
		switch {
		case !r.ports.has(port):
		case r.path != nil:
			f.paths = true
		default:
			f.deny = earliest(f.deny, r)
		}
	}
	for c := p.allow.find(h); ; {
		r := c.next()
		if r == nil {
			break
		}
		switch {
		case !r.ports.has(port):
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

// judge asks look after look; the first denial ends it.
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
	if d.Allowed() && r.Method != "" && f.paths {
		d = p.judgeRequest(r, &f, d)
	} else if d.Verdict == Intercept && r.Method != "" {
		d.Verdict = Allow // only a secret asked for interception
	}
	return d
}

// judgeHost takes the first look: by host and port alone.
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
	if f.paths || r.Port == 443 && p.secretHosts[r.Host] {
		d.Verdict, d.Needs = Intercept, WireTLS
	}
	return d
}

// judgeAddr takes the second look: at the address about to be dialled.
func (p *Policy) judgeAddr(r *Request, d Decision) Decision {
	a := r.Addr.Unmap().WithZone("")
	if r.Host.addr.IsValid() {
		if a != r.Host.addr {
			return Decision{Reason: ReasonIPProhibited, Rule: d.Rule}
		}
		return d // judged as the host
	}
	h := Host{addr: a}
	for c := p.deny.find(h); ; {
		rule := c.next()
		if rule == nil {
			break
		}
		// A DNS question (port 0) is refused only where no port is left.
		if rule.path == nil && (rule.ports.has(r.Port) || r.Port == 0 && rule.ports[0] == anyPort[0]) {
			return Decision{Reason: ReasonDeniedByRule, Rule: rule.rule}
		}
	}
	if ClassifyAddr(a) == "" || p.isStatic(r.Host, a) || p.addrNamed(a, r.Port, false) {
		return d
	}
	return Decision{Reason: ReasonIPProhibited, Rule: d.Rule}
}

// addrNamed reports whether an allow rule names the special-purpose address a
// with this port (0: any port). Path rules count for a literal host only.
func (p *Policy) addrNamed(a netip.Addr, port uint16, paths bool) bool {
	for c := p.allow.find(Host{addr: a}); ; {
		r := c.next()
		if r == nil {
			return false
		}
		if r.special && (paths || r.path == nil) && (port == 0 || r.ports.has(port)) {
			return true
		}
	}
}

func (p *Policy) isStatic(h Host, a netip.Addr) bool {
	for _, have := range p.static[h] {
		if have == a {
			return true
		}
	}
	return false
}

// judgeWire takes the third look: at what the client speaks. d.Needs says what
// the port asks for.
//
// Threat: domain fronting. A client asks for an allowed host and then names
// another one in its SNI or Host, inside the connection where the origin's
// front end obeys it. Both names must be the judged one. Left over: ECH, whose
// inner name nobody can see; its outer name is held to the same rule.
func judgeWire(r *Request, d Decision) Decision {
	reason := ReasonAllowed
	switch {
	case r.Wire >= WireBad:
		reason = ReasonMalformed
	case d.Needs == WireUnseen:
		return d
	case r.Wire == WireTLS && d.Needs == WireHTTP:
		reason = ReasonNotHTTP
	case r.Wire == WireTLS && r.Host.addr.IsValid():
		// An address has no SNI; a client that sends one names something else.
		if !r.Server.IsZero() {
			reason = ReasonSNIMismatch
		}
	case r.Wire == WireTLS:
		if r.Server != r.Host {
			reason = ReasonSNIMismatch
		}
	case d.Needs == WireTLS:
		reason = ReasonNotTLS
	case r.Wire == WireHTTP:
		absentIsFine := d.Needs == WireOther && r.Server.IsZero()
		if r.Server != r.Host && !absentIsFine || r.ServerPort != 0 && r.ServerPort != r.Port {
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

// judgeRequest takes the fourth look: at one HTTP request to a host that path
// rules cover.
func (p *Policy) judgeRequest(r *Request, f *found, d Decision) Decision {
	if !cleanPath(r.Path) {
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
	for c := p.allow.find(r.Host); ; {
		rule := c.next()
		if rule == nil {
			break
		}
		if rule.path == nil || !rule.ports.has(r.Port) || !rule.path.matchAllow(r.Path) {
			continue
		}
		if rule.path.hasMethod(r.Method) {
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

func (p *Policy) matchingDeny(r *Request) *compiled {
	var hit *compiled
	for c := p.deny.find(r.Host); ; {
		rule := c.next()
		if rule == nil {
			return hit
		}
		if rule.path != nil && rule.ports.has(r.Port) && rule.path.hasMethod(r.Method) && rule.path.matchDeny(r.Path) {
			hit = earliest(hit, rule)
		}
	}
}

// judgeAnyPort answers a DNS question: may any port of this host be reached?
// A question has no wire and no request, so either of them is malformed.
func (p *Policy) judgeAnyPort(r *Request) Decision {
	if r.Wire != WireUnseen || r.Method != "" {
		return Decision{Reason: ReasonMalformed}
	}
	var open, shut *compiled
	for c := p.allow.find(r.Host); ; {
		rule := c.next()
		if rule == nil {
			break
		}
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
	case shut != nil || p.denyRule(r.Host) != nil:
		return Decision{Reason: ReasonDeniedByRule, Rule: p.denyRule(r.Host)}
	case a.IsValid() && ClassifyAddr(a) != "":
		return Decision{Reason: ReasonIPProhibited}
	}
	return Decision{Reason: ReasonHostNotListed}
}

// denyRule reports the first deny rule about the whole of h, whatever its ports.
func (p *Policy) denyRule(h Host) *Rule {
	var first *compiled
	for c := p.deny.find(h); ; {
		r := c.next()
		if r == nil {
			break
		}
		if r.path == nil {
			first = earliest(first, r)
		}
	}
	if first == nil {
		return nil
	}
	return first.rule
}

// deniedEverywhere reports whether deny rules cover every port of ps.
func (p *Policy) deniedEverywhere(h Host, ps ports) bool {
	for _, want := range ps {
		for port := int(want.lo); port <= int(want.hi); {
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
	for c := p.deny.find(h); ; {
		r := c.next()
		if r == nil {
			return end
		}
		if r.path != nil {
			continue
		}
		for _, have := range r.ports {
			if have.lo <= port && port <= have.hi {
				end = max(end, have.hi)
			}
		}
	}
}

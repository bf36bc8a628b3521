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
	WireTLS         // a well-formed ClientHello; Request.SNI is its server name
	WireHTTP        // an HTTP/1 request in the clear; Request.HTTPHost is its Host
	WireOther       // bytes that are neither
	WireBad         // TLS or HTTP whose name cannot be read (malformed, an odd spelling); denied everywhere
)

// Request is one question: may this flow go there? Doors fill in what they
// know and ask again as they learn more; a later check may deny what an earlier
// one allowed, never the reverse. Request has no field for the door, so doors
// cannot disagree.
type Request struct {
	Host Host   // the judged destination: a name or a literal address
	Port uint16 // 0 only when a DNS question is judged: "is any port of this host reachable?"

	Addr  netip.Addr // second check: the address about to be dialled for Host; zero before resolution
	Local bool       // Addr belongs to the machine that dials

	Wire     Wire   // third check: what the client speaks
	SNI      Host   // the server name in its ClientHello; zero when absent
	HTTPHost Host   // the Host of its HTTP request, in the clear or inside intercepted TLS; zero when absent
	HTTPPort uint16 // the port in that Host; 0 when not stated

	Method string // fourth check, when the request itself can be seen; "" before. With WireTLS: TLS was terminated
	Path   string // origin-form path as sent, percent-encoding untouched, without the query
	Head   *Head  // what else its head says; nil: nothing that [Policy.NeedsHead] asks for
}

// Decision answers a Request. The zero Decision denies.
type Decision struct {
	Verdict Verdict
	Reason  Reason
	Rule    *Rule // the rule that decided; nil when none did. Never modify it

	// Needs is the fact the door must still bring (as Request.Wire, with the
	// name that goes with it) and have allowed before it relays a byte upstream:
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
	if !d.Allowed() && p.audit && auditable(d.Reason) {
		d = Decision{Verdict: Allow, Reason: d.Reason, Rule: d.Rule, Audit: true}
	}
	if d.Allowed() && p.ceiling != nil {
		return p.narrow(&r, d)
	}
	return d
}

// auditable reports whether an auditing policy lets this denial pass. What
// cannot be read, and what would loop, never passes.
func auditable(r Reason) bool {
	return r.Class() == ClassDenied && r != ReasonNoPolicy && r != ReasonLoop
}

// DecideAddrs makes the second check of every answer for r.Host: one denied
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

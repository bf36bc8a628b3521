package policy

import (
	"net/netip"
	"strconv"
	"strings"

	"egressd/policy/internal/grammar"
)

// Suggest reports the rule text that would allow what d denied for r, as narrow as
// the grammar has it ("" when no rule can, as for a malformed request, or when
// a deny rule has to go first). The text is a rule as in --allow or the allow
// section. Where a name was judged alone (r.Port is 0), as for a DNS question, it is
// the name, which has to be followed by the port that is wanted: a rule without a
// port would not help a database, and be wider than it asked for.
func (d Decision) Suggest(r Request) string {
	if d.Allowed() && !d.Audit || r.Host.IsZero() {
		return ""
	}
	switch d.Reason {
	case ReasonNoPolicy, ReasonHostNotListed, ReasonNotApproved:
		if r.Port == 0 || r.Port == 80 || r.Port == 443 {
			return r.Host.String()
		}
		return hostPort(r.Host, r.Port)
	case ReasonPortNotListed:
		return hostPort(r.Host, r.Port)
	case ReasonIPProhibited:
		h := r.Host
		if r.Addr.IsValid() && h.Name() != "" {
			h = HostFromAddr(r.Addr)
		}
		return suggestAddr(h, r.Port)
	case ReasonNotTLS, ReasonNotHTTP:
		return suggestRaw(r, d)
	case ReasonSNIMismatch:
		// Another name in the SNI is fronting, and no rule is offered for that.
		if r.SNI.IsZero() {
			return suggestRaw(r, d)
		}
	case ReasonMethodNotListed, ReasonPathNotListed:
		return suggestPath(r)
	}
	return ""
}

func hostPort(h Host, port uint16) string {
	if h.addr.IsValid() {
		return netip.AddrPortFrom(h.addr, port).String()
	}
	return h.name + ":" + strconv.Itoa(int(port))
}

func suggestAddr(h Host, port uint16) string {
	rule := h.String()
	if port != 0 {
		rule = hostPort(h, port)
	}
	p, err := grammar.Parse(rule, false)
	if err != nil || grammar.Undialable(p.Prefix) != "" {
		return ""
	}
	return rule
}

func suggestRaw(r Request, d Decision) string {
	if d.Rule != nil && strings.Contains(d.Rule.Text, "://") {
		return "" // a path rule covers the host: raw: does not lift interception
	}
	return "raw:" + hostPort(r.Host, r.Port)
}

// suggestPath spells the one request; a * that the client wrote would stand
// for more than itself.
func suggestPath(r Request) string {
	if strings.Contains(r.Method+r.Path, "*") {
		return ""
	}
	authority := hostPort(r.Host, r.Port)
	if r.Port == 443 {
		authority = grammar.QuoteHost(r.Host.String())
	}
	rule := r.Method + " https://" + authority + r.Path
	p, err := grammar.Parse(rule, false)
	if err != nil || p.Path == nil {
		return ""
	}
	return rule
}

package summary

import (
	"net/netip"

	"egressd/dnsfilter"
	"egressd/event"
	"egressd/policy"
)

// suggest reports the rule that would allow what was denied; "" when no rule
// can.
func suggest(reason policy.Reason, r policy.Request) string {
	return policy.Decision{Reason: reason}.Suggest(r)
}

// ruleText is the text and place of a rule; "" without one.
func ruleText(r *policy.Rule) string {
	if r == nil {
		return ""
	}
	return r.Text + " (" + r.Pos.String() + ")"
}

// request reports what was asked of the policy for c.
func request(c *event.Connection) policy.Request {
	r := policy.Request{Host: c.Host, Port: c.Port, Addr: Dialled(c), Method: c.Method, Path: c.Path}
	if r.Host.IsZero() {
		r.Host = policy.HostFromAddr(r.Addr)
	}
	return r
}

// Dialled reports the address that c was dialled to, or captured for. It is the
// zero Addr where a name was captured: what stands there then is the synthetic
// address that the name was given inside.
func Dialled(c *event.Connection) netip.Addr {
	a := c.Addr.Addr()
	if c.Host.Name() != "" && dnsfilter.SyntheticRange().Contains(a) {
		return netip.Addr{}
	}
	return a
}

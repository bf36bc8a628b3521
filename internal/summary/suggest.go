package summary

import (
	"net/netip"

	"egressd/event"
	"egressd/policy"
)

// suggest reports the rule that would allow what e says was denied; "" when no
// rule can.
func suggest(e event.Event) string {
	r, d, ok := Question(e)
	if !ok {
		return ""
	}
	return policy.Suggest(r, d)
}

// Question reports the request and the decision behind e; ok is false when e
// holds none.
func Question(e event.Event) (r policy.Request, d policy.Decision, ok bool) {
	reason, ok := Reason(e.Reason)
	if !ok || e.Proto != "" && e.Proto != "tcp" {
		return r, d, false
	}
	name := e.Host
	if name == "" {
		if ap, err := netip.ParseAddrPort(e.Addr); err == nil {
			name = ap.Addr().String()
		} else {
			name = e.Addr
		}
	}
	h, err := policy.ParseHost(name)
	if err != nil {
		return r, d, false
	}
	r = policy.Request{Host: h, Port: e.Port, Method: e.Method, Path: e.Path}
	if a, err := netip.ParseAddr(e.Addr); err == nil {
		r.Addr = a
	} else if ap, err := netip.ParseAddrPort(e.Addr); err == nil {
		r.Addr = ap.Addr()
	}
	return r, policy.Decision{Verdict: policy.Deny, Reason: reason}, true
}

// Reason reports the policy reason that s spells.
func Reason(s string) (policy.Reason, bool) {
	for r := policy.ReasonNoPolicy; r <= policy.ReasonInternal; r++ {
		if r.String() == s {
			return r, true
		}
	}
	return 0, false
}

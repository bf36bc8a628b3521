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
	return d.Suggest(r)
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
		name = Dialled(e).String()
	}
	h, err := policy.ParseHost(name)
	if err != nil {
		return r, d, false
	}
	r = policy.Request{Host: h, Port: e.Port, Method: e.Method, Path: e.Path}
	r.Addr = Dialled(e)
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

// Dialled reports the address of e, written with or without a port. It is the
// zero Addr where a name was captured: what stands there then is the synthetic
// address (198.18.0.0/15) that the name was given inside.
func Dialled(e event.Event) netip.Addr {
	a, err := netip.ParseAddr(e.Addr)
	if ap, aperr := netip.ParseAddrPort(e.Addr); aperr == nil {
		a, err = ap.Addr(), nil
	}
	synthetic := netip.PrefixFrom(netip.AddrFrom4([4]byte{198, 18}), 15)
	if err != nil || e.Host != "" && e.Host != a.String() && synthetic.Contains(a) {
		return netip.Addr{}
	}
	return a
}

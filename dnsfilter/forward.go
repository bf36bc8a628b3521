package dnsfilter

import (
	"errors"
	"net/netip"
	"time"

	"github.com/miekg/dns"

	"egressd/policy"
)

// forwardTTL bounds how long a client may keep a forwarded answer, so that a
// reloaded policy is felt soon.
const forwardTTL = 5 * time.Minute

// forward answers an allowed A or AAAA question with real addresses, each of
// which was judged: one in a denied class denies them all, of either family.
// The upstream is asked from scratch; nothing but the name comes from the client. False:
// look would have to wait.
func (s *Server) forward(p *policy.Policy, t *task, look find) bool {
	req := policy.Request{Host: t.host}
	found := found{addrs: p.Static(t.host), expires: time.Now().Add(syntheticTTL * time.Second)}
	if len(found.addrs) == 0 {
		var err error
		var now bool
		if found, err, now = look(t, s.Resolver); !now {
			return false
		}
		if err != nil {
			t.failed(err)
			return true
		}
	}
	d := p.DecideAddrs(req, found.addrs)
	if !d.Allowed() {
		req.Addr = culprit(p, req, found.addrs)
		t.allowed, t.decision, t.addr = false, d, req.Addr
		t.outcome = denied(req, d)
		return true
	}
	if d.Audit {
		t.decision = d
	}
	t.outcome = outcome{addrs: found.addrs, ttl: seconds(time.Until(found.expires), forwardTTL)}
	return true
}

// culprit reports which of addrs the policy denies, for the words of the denial.
func culprit(p *policy.Policy, r policy.Request, addrs []netip.Addr) netip.Addr {
	for _, r.Addr = range addrs {
		if !p.Decide(r).Allowed() {
			return r.Addr
		}
	}
	return netip.Addr{}
}

// failed is the answer when the upstreams gave no address.
func (t *task) failed(err error) {
	t.decision.Reason = ReasonOf(err)
	o := negative(dns.RcodeServerFailure)
	switch t.decision.Reason {
	case policy.ReasonNotFound:
		o.rcode = dns.RcodeNameError
		if le, ok := errors.AsType[*LookupError](err); ok && le.exists {
			o.rcode = dns.RcodeSuccess // the name is there, without addresses
		}
	case policy.ReasonDNSTimeout:
		o.ede, o.edeText[0] = dns.ExtendedErrorCodeNoReachableAuthority, "no upstream answered in time"
	case policy.ReasonDNSError:
		o.ede, o.edeText[0] = dns.ExtendedErrorCodeNetworkError, "the upstreams failed"
	default: // overload and the like: plain SERVFAIL
	}
	t.outcome = o
}

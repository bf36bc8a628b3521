package dnsfilter

import (
	"context"
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
// The upstream is asked from scratch; nothing but the name comes from the client.
func (s *Server) forward(ctx context.Context, p *policy.Policy, q *query, v verdict) (outcome, verdict) {
	req := policy.Request{Host: v.host}
	found := found{addrs: p.Static(v.host), expires: time.Now().Add(syntheticTTL * time.Second)}
	if len(found.addrs) == 0 {
		var err error
		if found, err = s.Resolver.lookup(ctx, v.host); err != nil {
			return failed(err, v)
		}
	}
	d := p.DecideAddrs(req, found.addrs)
	if !d.Allowed() {
		req.Addr = culprit(p, req, found.addrs)
		v.allowed, v.decision, v.addr = false, d, req.Addr
		return denied(req, d), v
	}
	if d.Audit {
		v.decision = d
	}
	return q.addresses(found.addrs, seconds(time.Until(found.expires), forwardTTL)), v
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
func failed(err error, v verdict) (outcome, verdict) {
	v.decision.Reason = ReasonOf(err)
	o := negative(dns.RcodeServerFailure)
	switch v.decision.Reason {
	case policy.ReasonNotFound:
		o.rcode = dns.RcodeNameError
		if le, ok := errors.AsType[*LookupError](err); ok && le.exists {
			o.rcode = dns.RcodeSuccess // the name is there, without addresses
		}
	case policy.ReasonDNSTimeout:
		o.ede, o.edeText = dns.ExtendedErrorCodeNoReachableAuthority, "no upstream answered in time"
	case policy.ReasonDNSError:
		o.ede, o.edeText = dns.ExtendedErrorCodeNetworkError, "the upstreams failed"
	default: // overload and the like: plain SERVFAIL
	}
	return o, v
}

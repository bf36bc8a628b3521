package dnsfilter

import (
	"context"
	"net/netip"
	"strings"
	"time"

	"github.com/miekg/dns"

	"egressd/event"
	"egressd/policy"
)

// verdict is what was decided about one query, for its event.
type verdict struct {
	host     policy.Host // judged; zero when nothing was
	asked    string      // the name as asked, when host is zero
	allowed  bool
	decision policy.Decision // Reason, Rule and Audit as they go into the event
	digest   string
	addr     netip.Addr // the answer that was refused; zero otherwise
}

// answer judges one message, records it, and reports the bytes to send back;
// nil means no answer. It holds the only path from a query to a reply.
func (s *Server) answer(ctx context.Context, wire []byte, client netip.AddrPort, tcp bool) []byte {
	q, code, ok := parseQuery(wire)
	if !ok {
		v := malformed(&q)
		s.record(&q, v, event.NoAnswer, client) // dropped either way
		return nil
	}
	var o outcome
	var v verdict
	switch {
	case code != dns.RcodeSuccess:
		o, v = negative(code), malformed(&q)
	case q.qclass != dns.ClassINET:
		o, v = negative(dns.RcodeRefused), malformed(&q)
	default:
		to := s.routed(client)
		if to == nil {
			o, v = negative(dns.RcodeRefused), verdict{asked: q.spelling(), decision: policy.Decision{Reason: policy.ReasonNotAuthenticated}}
			break
		}
		s = to
		o, v = s.judge(ctx, &q, client.Addr())
	}
	if !s.record(&q, v, rcodeOf(o.rcode), client) {
		o = negative(dns.RcodeServerFailure)
	}
	return q.pack(o, tcp)
}

// routed reports who answers client; nil refuses.
func (s *Server) routed(client netip.AddrPort) *Server {
	if s.Route == nil {
		return s
	}
	return s.Route(client)
}

// overloaded refuses a query unjudged: too many are in flight.
func (s *Server) overloaded(wire []byte, client netip.AddrPort) []byte {
	q, _, ok := parseQuery(wire)
	if !ok {
		return nil
	}
	v := verdict{asked: q.spelling(), decision: policy.Decision{Reason: policy.ReasonOverload}}
	s.record(&q, v, event.ServFail, client) // refused either way
	return q.bare(dns.RcodeServerFailure)
}

// unreadable records a message that is too long for a query.
func (s *Server) unreadable(client netip.AddrPort) {
	s.record(&query{}, malformed(&query{}), event.NoAnswer, client)
}

func malformed(q *query) verdict {
	return verdict{asked: q.spelling(), decision: policy.Decision{Reason: policy.ReasonMalformed}}
}

// judge decides one question of class IN, which client asks.
func (s *Server) judge(ctx context.Context, q *query, client netip.Addr) (outcome, verdict) {
	h, ok := q.host()
	if !ok {
		v := malformed(q)
		return denied(policy.Request{}, v.decision), v
	}
	p := s.policy()
	v := verdict{host: h, digest: p.Digest()}
	if o, owner := s.reverse(p, q, h); owner.Allowed() {
		v.allowed, v.decision = true, owner
		return o, v
	}
	req := policy.Request{Host: h}
	v.decision = p.Decide(req)
	v.allowed = v.decision.Allowed()
	forward := p.DNS().Mode == policy.DNSForward
	if !v.allowed && s.AskLater && unlisted(v.decision.Reason) {
		// Unapproved names never leave the machine, whatever the mode.
		v.allowed, forward = true, false
	}
	if !v.allowed {
		return denied(req, v.decision), v
	}
	switch {
	case h.IsLocalhost() && len(p.Static(h)) == 0:
		return q.addresses(loopback(), syntheticTTL), v // in every mode: it is the client's own
	case q.qtype == dns.TypeANY:
		return q.minimalANY(), v
	case q.qtype != dns.TypeA && q.qtype != dns.TypeAAAA:
		// Threat: TXT, NULL, MX and the like carry data both ways, HTTPS and
		// SVCB carry ECH keys that hide the SNI -> they exist and are empty,
		// and no upstream is asked. Left over: programs that need MX or SRV
		// records do not find them.
		return negative(dns.RcodeSuccess), v
	case forward:
		return s.forward(ctx, p, q, v)
	}
	if q.qtype == dns.TypeAAAA {
		return negative(dns.RcodeSuccess), v // IPv4 only: clients fall back to A
	}
	return s.synthetic(q, v, pinRequest{name: h, owner: client, spelled: p.Spells(h)})
}

// synthetic answers an allowed A question with an address of ours.
func (s *Server) synthetic(q *query, v verdict, c pinRequest) (outcome, verdict) {
	a, err := s.Pins.pin(c)
	if err != nil {
		v.allowed = false
		v.decision.Reason = policy.ReasonOverload
		return negative(dns.RcodeServerFailure), v
	}
	return q.addresses(oneAddr(a), syntheticTTL), v
}

// denied is the "no" of DNS: NXDOMAIN, and for clients that speak EDNS the
// reason and the flag that would allow it (EDE 15 Blocked, RFC 8914 section
// 4.16). NXDOMAIN rather than REFUSED, as measured with two nameservers in
// resolv.conf: glibc, Node and Go take NXDOMAIN for the answer and say that
// there is no such host; on REFUSED each asks four times as often and reports a
// temporary failure, which programs retry.
func denied(r policy.Request, d policy.Decision) outcome {
	o := outcome{rcode: dns.RcodeNameError, ede: dns.ExtendedErrorCodeBlocked}
	o.edeText = "blocked by egressd: " + d.Reason.String()
	if rule := d.Suggest(r); rule != "" {
		o.edeText += "; to allow it: --allow " + rule
	}
	return o
}

// minimalANY is the small answer to ANY. RFC 8482 section 4.2.
func (q *query) minimalANY() outcome {
	h := q.header(syntheticTTL)
	h.Rrtype = dns.TypeHINFO
	return outcome{answers: []dns.RR{&dns.HINFO{Hdr: h, Cpu: "RFC8482"}}}
}

// unlisted reports whether r only says that no rule speaks of the host.
func unlisted(r policy.Reason) bool {
	return r == policy.ReasonHostNotListed || r == policy.ReasonPortNotListed
}

// policy reports the policy in force; nil denies.
func (s *Server) policy() *policy.Policy {
	if s.Policy == nil {
		return nil
	}
	return s.Policy.Load()
}

// record writes the one event of a query. False: it could not be written, and
// the query must not be answered. The decision is the policy's word on the
// name, the code what the client was answered: an allowed name that the
// upstream does not know is allowed with NXDOMAIN.
func (s *Server) record(q *query, v verdict, rcode event.RCode, client netip.AddrPort) bool {
	asked := &event.Query{
		Verdict: event.Judged(v.decision), Host: v.host, Asked: strings.TrimSuffix(v.asked, "."),
		Addr: v.addr, Client: client, QType: q.typeName(), RCode: rcode,
	}
	asked.Decision = event.Blocked
	if v.allowed {
		asked.Decision = event.Allowed
	}
	e := event.Event{Time: time.Now(), Session: s.Session, Isolation: s.Isolation, Policy: v.digest, Body: asked}
	rec := event.OnRecord{To: s.Events, Log: s.Log}
	if v.allowed {
		rec.Allow(e)
	} else {
		rec.Deny(e)
	}
	return !rec.Unrecorded()
}

// rcodeOf reports the word of the event for a response code. The rest of the
// codes is never sent.
func rcodeOf(code int) event.RCode {
	switch code {
	case dns.RcodeSuccess:
		return event.NoError
	case dns.RcodeFormatError:
		return event.FormErr
	case dns.RcodeNameError:
		return event.NXDomain
	case dns.RcodeNotImplemented:
		return event.NotImp
	case dns.RcodeRefused:
		return event.Refused
	case dns.RcodeBadVers:
		return event.BadVers
	}
	return event.ServFail
}

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

// task is one query on its way from its bytes to its reply.
type task struct {
	wire   []byte // the message; q is inside it
	client netip.AddrPort
	known  *hosts // of the goroutine
	heard  *later // what it has waited for; nil: nothing yet

	q       query
	replies bool // it deserves a reply
	server  *Server
	verdict
	outcome
	body event.Query // of its event

	later    bool // it needs a look-up, and nothing is decided yet
	listed   bool // its event is in the batch that is being recorded
	recorded bool // its event was taken
}

// find looks up the addresses of t's host in r. now is false when it has no answer and
// does not wait for one.
type find func(t *task, r *Resolver) (f found, err error, now bool)

// heardOrKnown finds what t has waited for, or what r knows by itself.
func heardOrKnown(t *task, r *Resolver) (f found, err error, now bool) {
	switch l := t.heard; {
	case l == nil:
		return r.known(t.host)
	case l.resolver != r || l.name != t.host: // another gate answers this client now
		return found{}, &LookupError{Name: t.host.Name(), Reason: policy.ReasonInternal, Err: errRerouted}, true
	default:
		return l.result, l.err, true
	}
}

// answer judges one message, records it, and reports the bytes to send back; nil means
// no answer. It waits for look-ups.
func (s *Server) answer(ctx context.Context, wire []byte, client netip.AddrPort, tcp bool) []byte {
	tasks := [1]task{{wire: wire, client: client}}
	s.decide(&tasks[0], func(t *task, r *Resolver) (found, error, bool) {
		f, err := r.lookup(ctx, t.host)
		return f, err, true
	})
	record(tasks[:], make([]event.Event, 1))
	return tasks[0].reply(nil, tcp)
}

// answerNow is answer for many messages at once, but for those that need a look-up.
// Each of the others is judged, all are recorded with one write, and only then replies
// are made.
func (s *Server) answerNow(b *batch, n int) {
	tasks := b.tasks[:n]
	for i := range tasks {
		t := &tasks[i]
		*t = task{wire: t.wire, client: t.client, heard: t.heard, known: &b.known}
		t.later = !s.decide(t, heardOrKnown)
	}
	record(tasks, b.events)
	for i := range tasks {
		if t := &tasks[i]; !t.later {
			b.SetReply(i, t.reply(b.Buffer(i), false))
		}
	}
}

// decide judges t and prepares its event. It is the only path from a query to an
// outcome. False: find would have to wait.
func (s *Server) decide(t *task, look find) bool {
	q, code, ok := parseQuery(t.wire)
	t.server, t.q, t.replies = s, q, ok
	now := true
	switch {
	case !ok:
		t.verdict = malformed(&q) // dropped either way
	case code != dns.RcodeSuccess:
		t.outcome, t.verdict = negative(code), malformed(&q)
	case q.qclass != dns.ClassINET:
		t.outcome, t.verdict = negative(dns.RcodeRefused), malformed(&q)
	default:
		to := s.routed(t.client)
		if to == nil {
			t.outcome = negative(dns.RcodeRefused)
			t.verdict = verdict{asked: q.spelling(), decision: policy.Decision{Reason: policy.ReasonNotAuthenticated}}
			break
		}
		t.server = to
		now = to.judge(t, look)
	}
	rcode := event.NoAnswer
	if ok {
		rcode = rcodeOf(t.rcode)
	}
	t.body = t.query(&t.q, rcode, t.client)
	return now
}

// reply makes the reply to t, once its event was offered to the record, in b, which is
// empty; nil: there is none. What is not on record is not answered.
func (t *task) reply(b []byte, tcp bool) []byte {
	if !t.replies {
		return nil
	}
	if !t.recorded {
		t.outcome = negative(dns.RcodeServerFailure)
	}
	return t.q.append(b, &t.outcome, tcp)
}

// routed reports who answers client; nil refuses.
func (s *Server) routed(client netip.AddrPort) *Server {
	if s.Route == nil {
		return s
	}
	return s.Route(client)
}

// unreadable records a message that is too long for a query.
func (s *Server) unreadable(client netip.AddrPort) {
	s.recordOne(&query{}, malformed(&query{}), event.NoAnswer, client)
}

func malformed(q *query) verdict {
	return verdict{asked: q.spelling(), decision: policy.Decision{Reason: policy.ReasonMalformed}}
}

// judge decides about t, a question of class IN. False: it takes a look-up that look
// does not wait for.
func (s *Server) judge(t *task, look find) bool {
	q := &t.q
	var hint policy.Host
	if t.heard != nil {
		hint = t.heard.name
	}
	h, ok := q.host(t.known, hint)
	if !ok {
		t.verdict = malformed(q)
		t.outcome = denied(policy.Request{}, t.decision)
		return true
	}
	p := s.policy()
	t.verdict = verdict{host: h, digest: p.Digest()}
	if o, owner := s.reverse(p, q, h); owner.Allowed() {
		t.outcome, t.allowed, t.decision = o, true, owner
		return true
	}
	req := policy.Request{Host: h}
	t.decision = p.Decide(req)
	t.allowed = t.decision.Allowed()
	forward := p.DNS().Mode == policy.DNSForward
	if !t.allowed && s.AskLater && unlisted(t.decision.Reason) {
		// Unapproved names never leave the machine, whatever the mode.
		t.allowed, forward = true, false
	}
	if !t.allowed {
		t.outcome = denied(req, t.decision)
		return true
	}
	switch {
	case h.IsLocalhost() && len(p.Static(h)) == 0:
		t.outcome = outcome{addrs: loopback(), ttl: syntheticTTL} // in every mode: it is the client's own
	case q.qtype == dns.TypeANY:
		t.outcome = outcome{minimal: true}
	case q.qtype != dns.TypeA && q.qtype != dns.TypeAAAA:
		// Threat: TXT, NULL, MX and the like carry data both ways, HTTPS and
		// SVCB carry ECH keys that hide the SNI -> they exist and are empty,
		// and no upstream is asked. Left over: programs that need MX or SRV
		// records do not find them.
		t.outcome = negative(dns.RcodeSuccess)
	case forward:
		return s.forward(p, t, look)
	case q.qtype == dns.TypeAAAA:
		t.outcome = negative(dns.RcodeSuccess) // IPv4 only: clients fall back to A
	default:
		s.synthetic(t, pinRequest{name: h, owner: t.client.Addr(), spelled: p.Spells(h)})
	}
	return true
}

// synthetic answers an allowed A question with an address of ours.
func (s *Server) synthetic(t *task, c pinRequest) {
	a, err := s.Pins.pin(c)
	if err != nil {
		t.allowed = false
		t.decision.Reason = policy.ReasonOverload
		t.outcome = negative(dns.RcodeServerFailure)
		return
	}
	t.outcome = outcome{own: a, ttl: syntheticTTL}
}

// denied is the "no" of DNS: NXDOMAIN, and for clients that speak EDNS the
// reason and the flag that would allow it (EDE 15 Blocked, RFC 8914 section
// 4.16). NXDOMAIN rather than REFUSED, as measured with two nameservers in
// resolv.conf: glibc, Node and Go take NXDOMAIN for the answer and say that
// there is no such host; on REFUSED each asks four times as often and reports a
// temporary failure, which programs retry.
func denied(r policy.Request, d policy.Decision) outcome {
	o := outcome{rcode: dns.RcodeNameError, ede: dns.ExtendedErrorCodeBlocked}
	o.edeText[0], o.edeText[1] = "blocked by egressd: ", d.Reason.String()
	if rule := d.Suggest(r); rule != "" {
		o.edeText[2], o.edeText[3] = "; to allow it: --allow ", rule
		o.edeText[4] = ":PORT"
	}
	return o
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

// query is the body of the event of a query. The decision is the policy's word on the
// name, the code what the client was answered: an allowed name that the upstream does
// not know is allowed with NXDOMAIN.
func (v *verdict) query(q *query, rcode event.RCode, client netip.AddrPort) event.Query {
	body := event.Query{
		Verdict: event.Judged(v.decision), Host: v.host, Asked: strings.TrimSuffix(v.asked, "."),
		Addr: v.addr, Client: client, QType: q.typeName(), RCode: rcode,
	}
	body.Decision = event.Blocked
	if v.allowed {
		body.Decision = event.Allowed
	}
	return body
}

// event is the one event of a query, with its body.
func (s *Server) event(digest string, body *event.Query, now time.Time) event.Event {
	return event.Event{Time: now, Session: s.Session, Isolation: s.Isolation, Policy: digest, Body: body}
}

// record writes the events of tasks, but for those that come later, each into the record
// of its server. events is room for as many.
func record(tasks []task, events []event.Event) {
	now := time.Now()
	for first := range tasks {
		if tasks[first].later || tasks[first].listed {
			continue
		}
		s, n := tasks[first].server, 0
		for i := first; i < len(tasks); i++ {
			if t := &tasks[i]; t.server == s && !t.later {
				t.listed = true
				events[n] = s.event(t.digest, &t.body, now)
				n++
			}
		}
		rec := event.OnRecord{To: s.Events, Log: s.Log}
		rec.Each(events[:n])
		n = 0
		for i := first; i < len(tasks); i++ {
			if t := &tasks[i]; t.server == s && !t.later {
				t.recorded = events[n].Err == nil
				n++
			}
		}
	}
}

// recordOne writes the event of a query that is refused, whether or not it is recorded.
func (s *Server) recordOne(q *query, v verdict, rcode event.RCode, client netip.AddrPort) {
	body := v.query(q, rcode, client)
	rec := event.OnRecord{To: s.Events, Log: s.Log}
	rec.Each([]event.Event{s.event(v.digest, &body, time.Now())})
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

package dnsfilter

import (
	"context"
	"fmt"
	"net/netip"
	"runtime/debug"

	"github.com/miekg/dns"

	"egressd/event"
	"egressd/policy"
)

// answerRecovering is answer, in which a bug costs the one query that met it: it is
// answered SERVFAIL, and the bug is logged with its stack and recorded.
//
// Threat: one client finds a query that makes the filter panic, and with it ends
// the way out of all clients -> every query is answered in here. Left over: a panic
// with a lock held would block what needs the lock; the locks of this package
// are held around map and list operations alone.
func (s *Server) answerRecovering(ctx context.Context, wire []byte, client netip.AddrPort, tcp bool) (answer []byte) {
	defer func() {
		if r := recover(); r != nil {
			s.log().Error("a bug in the DNS filter cost a query its answer", "panic", fmt.Sprint(r), "stack", string(debug.Stack()))
			answer = s.unjudged(wire, client, policy.ReasonInternal)
		}
	}()
	return s.answer(ctx, wire, client, tcp)
}

// overloaded refuses a query unjudged: too many are in flight. A bug costs it its answer.
func (s *Server) overloaded(wire []byte, client netip.AddrPort) []byte {
	return s.unjudged(wire, client, policy.ReasonOverload)
}

// unjudged records why a query was not judged and answers SERVFAIL; nil, which is no
// answer, if a bug is in reading or in recording.
func (s *Server) unjudged(wire []byte, client netip.AddrPort, why policy.Reason) (answer []byte) {
	defer func() {
		if r := recover(); r != nil {
			s.log().Error("a bug was not recorded", "panic", fmt.Sprint(r))
			answer = nil
		}
	}()
	q, _, ok := parseQuery(wire)
	if !ok {
		return nil
	}
	v := verdict{asked: q.spelling(), decision: policy.Decision{Reason: why}}
	s.recordOne(&q, v, event.ServFail, client)
	return q.bare(dns.RcodeServerFailure)
}

// answerManyRecovering is answerNow, in which a bug costs nothing yet: afterwards, every
// query of the batch is one that is answered by itself, later.
//
// Threat: a query that meets a bug takes with it those that came beside it -> each gets its
// turn in answerRecovering. Left over: if the bug is in recording, queries that were
// recorded before it are recorded twice.
func (s *Server) answerManyRecovering(b *batch, n int) {
	defer func() {
		if r := recover(); r != nil {
			s.log().Error("a bug in the DNS filter: the queries beside it are answered one by one", "panic", fmt.Sprint(r), "stack", string(debug.Stack()))
			for i := range b.tasks[:n] {
				b.tasks[i].later, b.tasks[i].server = true, nil
				b.SetReply(i, nil)
			}
		}
	}()
	s.answerNow(b, n)
}

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
			answer = s.answerAfterPanic(wire, client)
		}
	}()
	return s.answer(ctx, wire, client, tcp)
}

// answerAfterPanic records a query that met a bug and answers SERVFAIL; nil,
// which is no answer, if the bug is in reading or in recording.
func (s *Server) answerAfterPanic(wire []byte, client netip.AddrPort) (answer []byte) {
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
	v := verdict{asked: q.spelling(), decision: policy.Decision{Reason: policy.ReasonInternal}}
	s.record(&q, v, event.ServFail, client) // refused either way
	return q.bare(dns.RcodeServerFailure)
}

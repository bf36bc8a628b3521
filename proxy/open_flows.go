package proxy

import (
	"egressd/policy"
	"egressd/proxy/internal/flows"
)

// openFlow is a flow that was allowed and goes on.
type openFlow = flows.Flow[*conn]

// track registers a flow that was allowed by the policy under, until untrack is
// called. t.Stop may be called before track returns.
//
// Threat: the policy changes while a flow is between its last check and this
// line, so that neither check nor Rejudge sees the new one -> once the flow is
// registered, where every later Rejudge finds it, the policy in force is
// compared with the one it was judged by.
func (s *Server) track(t *openFlow, under *policy.Policy) {
	s.open.Add(t, s.now())
	if s.inForce() != under {
		s.rejudge(t)
	}
}

func (s *Server) untrack(t *openFlow) { s.open.Remove(t) }

// Rejudge closes every flow that the policy in force now denies, and the kept
// connections to origins that were dialled under another one. It reports how
// many flows it closed. Call it after each change of the policy.
func (s *Server) Rejudge() int {
	s.pool.Retire(s.inForce)
	n := 0
	for _, t := range s.open.All() {
		if s.rejudge(t) {
			n++
		}
	}
	return n
}

// rejudge stops t if the policy in force denies it.
func (s *Server) rejudge(t *openFlow) (stopped bool) {
	d := s.check(t.Owner, *t.Request)
	if d.Allowed() && !t.Kind.Blind(d, *t.Request) {
		return false
	}
	if d.Allowed() {
		d = policy.Decision{Reason: flows.Unseen(d), Rule: d.Rule}
	}
	t.Stop(d, "denied by the policy now in force: "+d.Reason.String())
	return true
}

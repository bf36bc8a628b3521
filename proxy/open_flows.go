package proxy

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"egressd/policy"
)

// openFlow is one flow that was allowed and goes on.
type openFlow struct {
	c    *conn
	req  *policy.Request // with every fact that was judged; it does not change any more
	kind flowKind
	// hidden: a connection that flows may follow on. It is not counted as one.
	hidden bool
	stop   func(d policy.Decision, why string)

	// Owned by the sweeper, under openFlows.mu.
	since, active time.Time
	seen          int64
	bytes         *atomic.Int64 // nil: the owner watches for idleness itself
}

// flowKind says how much of a flow the gate sees: what a new policy wants
// judged in a flow that is out of sight already, it denies.
type flowKind uint8

const (
	flowRequests flowKind = iota // each HTTP request is judged
	flowTunnel                   // the first bytes were judged
	flowRaw                      // only name and address were judged
)

// openFlows holds the flows that go on, for reloads and limits in time. It is
// bounded by the limit on connections.
type openFlows struct {
	mu  sync.Mutex
	all map[*openFlow]struct{}
}

// track registers a flow that was allowed by the policy under, until untrack is
// called. t.stop must end the flow and return at once; it may be called more
// than once, from any goroutine, and before track returns. t.bytes counts what
// was relayed; nil turns the idle limit off for this flow.
//
// Threat: the policy changes while a flow is between its last check and this
// line, so that neither check nor Rejudge sees the new one -> once the flow is
// registered, where every later Rejudge finds it, the policy in force is
// compared with the one it was judged by.
func (s *Server) track(t *openFlow, under *policy.Policy) {
	t.since = s.now()
	t.active = t.since
	g := &s.open
	g.mu.Lock()
	if g.all == nil {
		g.all = make(map[*openFlow]struct{})
	}
	g.all[t] = struct{}{}
	g.mu.Unlock()
	if s.inForce() != under {
		s.rejudge(t)
	}
}

func (s *Server) untrack(t *openFlow) {
	s.open.mu.Lock()
	defer s.open.mu.Unlock()
	delete(s.open.all, t)
}

// Rejudge closes every flow that the policy in force now denies, and the kept
// connections to origins that were dialled under another one. It reports how
// many flows it closed. Call it after each change of the policy.
func (s *Server) Rejudge() int {
	s.retireUpstreams()
	n := 0
	for _, t := range s.open.list() {
		if s.rejudge(t) {
			n++
		}
	}
	return n
}

// rejudge stops t if the policy in force denies it.
func (s *Server) rejudge(t *openFlow) (stopped bool) {
	d := s.check(t.c, *t.req)
	if d.Allowed() && !t.kind.blind(d, *t.req) {
		return false
	}
	if d.Allowed() {
		d = policy.Decision{Reason: unseen(d), Rule: d.Rule}
	}
	t.stop(d, "denied by the policy now in force: "+d.Reason.String())
	return true
}

// blind reports whether d allows the flow only under checks that cannot be made
// any more.
//
// Threat: a client opens a tunnel, and the policy that is loaded next wants to
// see the requests inside, or the protocol of a raw: flow -> the tunnel is
// closed, and its next connection goes through the checks.
func (k flowKind) blind(d policy.Decision, r policy.Request) bool {
	switch k {
	case flowTunnel:
		return d.Verdict == policy.Intercept || d.Needs == policy.WireHTTP || d.Needs == policy.WireTLS && r.Wire != policy.WireTLS
	case flowRaw:
		return !d.Audit && (d.Verdict == policy.Intercept || d.Needs != policy.WireUnseen)
	case flowRequests:
	}
	return false
}

// unseen is the reason to end a flow that is out of the sight that d asks for.
func unseen(d policy.Decision) policy.Reason {
	switch {
	case d.Verdict == policy.Intercept:
		return policy.ReasonInterceptOff
	case d.Needs == policy.WireTLS:
		return policy.ReasonNotTLS
	case d.Needs == policy.WireHTTP:
		return policy.ReasonNotHTTP
	}
	return policy.ReasonProtocol
}

func (g *openFlows) list() []*openFlow {
	g.mu.Lock()
	defer g.mu.Unlock()
	flows := make([]*openFlow, 0, len(g.all))
	for t := range g.all {
		flows = append(flows, t)
	}
	return flows
}

// sweep ends the flows that were idle or open for too long.
func (g *openFlows) sweep(now time.Time, b bounds) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for t := range g.all {
		if now.Sub(t.since) > b.maxDuration {
			t.stop(because(policy.ReasonOverload), fmt.Sprintf("the flow was open for longer than it may (max_duration_seconds: %.0f)", b.maxDuration.Seconds()))
			continue
		}
		if t.bytes == nil {
			continue
		}
		if n := t.bytes.Load(); n != t.seen {
			t.seen, t.active = n, now
		} else if now.Sub(t.active) > b.idle {
			t.stop(because(policy.ReasonOverload), fmt.Sprintf("the flow was idle for longer than it may (idle_timeout_seconds: %.0f)", b.idle.Seconds()))
		}
	}
}

// size counts the flows.
func (g *openFlows) size() (n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for t := range g.all {
		if !t.hidden {
			n++
		}
	}
	return n
}

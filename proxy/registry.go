package proxy

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"egressd/policy"
)

// tracked is one flow that was allowed and goes on.
type tracked struct {
	ctx  context.Context // what the person let pass on this connection
	req  *policy.Request // with every fact that was judged; it does not change any more
	kind flowKind
	// hidden: the way for flows, not one itself, and not counted as one.
	hidden bool
	stop   func(d policy.Decision, why string)

	// Owned by the sweeper, under registry.mu.
	since, active time.Time
	seen          int64
	bytes         *atomic.Int64 // nil: the owner watches idleness itself
}

// flowKind says how much of a flow the gate sees: what a new policy wants to
// look at in a flow that is out of sight already, it denies.
type flowKind uint8

const (
	flowRequests flowKind = iota // each HTTP request is judged
	flowTunnel                   // the first bytes were judged
	flowRaw                      // nothing was looked at
)

// registry holds the flows that go on, for reloads and limits in time. It is
// bounded by the limit on connections.
type registry struct {
	mu    sync.Mutex
	flows map[*tracked]struct{}
}

// track registers a flow that was allowed by the policy under, until untrack is
// called. t.stop must end the flow and return at once; it may be called more
// than once, from any goroutine, and before track returns. t.bytes counts what
// was relayed; nil turns the idle limit off for this flow.
//
// Threat: the policy changes while a flow is between its last look and this
// line, so that neither look nor Rejudge sees the new one -> once the flow is
// registered, where every later Rejudge finds it, the policy in force is
// compared with the one it was judged by.
func (s *Server) track(t *tracked, under *policy.Policy) {
	t.since = s.now()
	t.active = t.since
	g := &s.open
	g.mu.Lock()
	if g.flows == nil {
		g.flows = make(map[*tracked]struct{})
	}
	g.flows[t] = struct{}{}
	g.mu.Unlock()
	if s.inForce() != under {
		s.rejudge(t)
	}
}

func (s *Server) untrack(t *tracked) {
	s.open.mu.Lock()
	defer s.open.mu.Unlock()
	delete(s.open.flows, t)
}

// Rejudge closes every flow that the policy in force now denies, and the kept
// connections to origins that were dialled under another one. It reports how
// many flows it closed. Call it after each change of the policy.
func (s *Server) Rejudge() int {
	s.retireUpstreams()
	n := 0
	for _, t := range s.open.all() {
		if s.rejudge(t) {
			n++
		}
	}
	return n
}

// rejudge stops t where the policy in force denies it.
func (s *Server) rejudge(t *tracked) (stopped bool) {
	d := s.look(t.ctx, *t.req)
	if d.Allowed() && !t.kind.blind(d, *t.req) {
		return false
	}
	if d.Allowed() {
		d = policy.Decision{Reason: unseen(d), Rule: d.Rule}
	}
	t.stop(d, "denied by the policy now in force: "+d.Reason.String())
	return true
}

// blind reports whether d allows the flow only under looks that cannot be taken
// any more.
//
// Threat: a client opens a tunnel, and the policy that is loaded next wants to
// see the requests inside, or the protocol of a raw: flow -> the tunnel is
// closed, and its next connection goes through the looks.
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

func (g *registry) all() []*tracked {
	g.mu.Lock()
	defer g.mu.Unlock()
	flows := make([]*tracked, 0, len(g.flows))
	for t := range g.flows {
		flows = append(flows, t)
	}
	return flows
}

// sweep ends the flows that were idle or open for too long.
func (g *registry) sweep(now time.Time, b bounds) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for t := range g.flows {
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

// sweepEvery is how often idle flows are looked for: limits in time are kept to
// within it. It is also how often what was refused without a word is summed up.
const sweepEvery = time.Second

// sweeper runs beside every Serve and Run. Several at a time do no harm.
func (s *Server) sweeper(ctx context.Context) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			s.tidy()
		}
	}
}

// tidy does what is due each second.
func (s *Server) tidy() {
	defer s.survive(context.Background(), nil)
	now, b := s.now(), s.bounds()
	s.reportDrops()
	s.admitted.Tidy(b.Limits, now)
	s.open.sweep(now, b)
}

// size counts the flows.
func (g *registry) size() (n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for t := range g.flows {
		if !t.hidden {
			n++
		}
	}
	return n
}

package proxy

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"egressd/policy"
)

// tracked is one flow that was allowed and goes on.
type tracked struct {
	ctx  context.Context // what the person let pass on this connection
	req  policy.Request  // with every fact that was judged
	stop func(why string)

	// Owned by the sweeper, under registry.mu.
	since, active time.Time
	seen          int64
	bytes         *atomic.Int64 // nil: the owner watches idleness itself
}

// registry holds the flows that go on, for reloads and limits in time. It is
// bounded by the limit on connections.
type registry struct {
	mu    sync.Mutex
	flows map[*tracked]struct{}
}

// track registers a flow that was allowed as r until release is called. stop
// must close the flow and return at once; it may be called more than once and
// from any goroutine. bytes counts what was relayed; nil turns the idle limit
// off for this flow.
func (s *Server) track(ctx context.Context, r policy.Request, bytes *atomic.Int64, stop func(why string)) (release func()) {
	now := s.now()
	t := &tracked{ctx: ctx, req: r, stop: stop, since: now, active: now, bytes: bytes}
	g := &s.open
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.flows == nil {
		g.flows = make(map[*tracked]struct{})
	}
	g.flows[t] = struct{}{}
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.flows, t)
	}
}

// Rejudge closes every flow that the policy in force now denies and reports
// how many it closed.
func (s *Server) Rejudge() int {
	n := 0
	for _, t := range s.open.all() {
		if d := s.look(t.ctx, t.req); !d.Allowed() {
			t.stop("denied by the policy now in force: " + d.Reason.String())
			n++
		}
	}
	return n
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
			t.stop("the flow was open for too long")
			continue
		}
		if t.bytes == nil {
			continue
		}
		if n := t.bytes.Load(); n != t.seen {
			t.seen, t.active = n, now
		} else if now.Sub(t.active) > b.idle {
			t.stop("the flow was idle for too long")
		}
	}
}

// sweepEvery is how often idle flows are looked for: the idle limit is kept
// to within this time.
const sweepEvery = 5 * time.Second

// sweeper runs beside every Serve. Several at a time do no harm.
func (s *Server) sweeper(ctx context.Context) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			s.open.sweep(now, s.bounds())
		}
	}
}

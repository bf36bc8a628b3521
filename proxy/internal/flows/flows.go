// Package flows keeps the flows that were allowed and go on, so that a new policy
// and limits in time can end them.
//
//	var open flows.Set[*conn]
//	open.Add(&flows.Flow[*conn]{Owner: c, Request: &req, Kind: flows.Tunnel, Stop: stop, Bytes: &sum}, now)
//	for _, f := range open.All() {
//		// judge f.Request again, and f.Kind.Blind with the answer
//	}
//	open.Sweep(now, flows.Limits{MaxDuration: time.Hour, Idle: time.Minute})
//
// It judges nothing itself. A Set is bounded by what adds to it.
package flows

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"egressd/policy"
)

// Flow is one flow that was allowed and goes on. O is who owns it.
type Flow[O any] struct {
	Owner   O
	Request *policy.Request // with every fact that was judged; it does not change any more
	Kind    Kind
	// Hidden: a connection that flows may follow on. It is not counted as one.
	Hidden bool
	// Stop must end the flow and return at once. It may be called more than once,
	// from any goroutine.
	Stop func(d policy.Decision, why string)
	// Bytes counts what was relayed. Nil: the owner watches for idleness itself.
	Bytes *atomic.Int64

	// Owned by the sweeper, under Set.mu.
	since, active time.Time
	seen          int64
}

// Kind says how much of a flow is seen: what a new policy wants judged in a flow
// that is out of sight already, it denies.
type Kind uint8

// The kinds of flows.
const (
	Requests Kind = iota // each HTTP request is judged
	Tunnel               // the first bytes were judged
	Raw                  // only name and address were judged
)

// Blind reports whether d allows the flow only under checks that cannot be made
// any more.
//
// Threat: a client opens a tunnel, and the policy that is loaded next wants to
// see the requests inside, or the protocol of a raw: flow -> the tunnel is
// closed, and its next connection goes through the checks.
func (k Kind) Blind(d policy.Decision, r policy.Request) bool {
	switch k {
	case Tunnel:
		return d.Verdict == policy.Intercept || d.Needs == policy.WireHTTP || d.Needs == policy.WireTLS && r.Wire != policy.WireTLS
	case Raw:
		return !d.Audit && (d.Verdict == policy.Intercept || d.Needs != policy.WireUnseen)
	case Requests:
	}
	return false
}

// Unseen is the reason to end a flow that is out of the sight that d asks for.
func Unseen(d policy.Decision) policy.Reason {
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

// Limits are how long a flow may go on.
type Limits struct{ MaxDuration, Idle time.Duration }

// Set holds the flows that go on. The zero Set is empty. Safe for concurrent use.
type Set[O any] struct {
	mu  sync.Mutex
	all map[*Flow[O]]struct{}
}

// Add adds f, which begins now, until Remove.
func (s *Set[O]) Add(f *Flow[O], now time.Time) {
	f.since, f.active = now, now
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = make(map[*Flow[O]]struct{})
	}
	s.all[f] = struct{}{}
}

// Remove takes f out, if it is there.
func (s *Set[O]) Remove(f *Flow[O]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, f)
}

// All reports the flows of now, in no order.
func (s *Set[O]) All() []*Flow[O] {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*Flow[O], 0, len(s.all))
	for f := range s.all {
		all = append(all, f)
	}
	return all
}

// Sweep stops the flows that were idle or open for too long.
func (s *Set[O]) Sweep(now time.Time, l Limits) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for f := range s.all {
		if now.Sub(f.since) > l.MaxDuration {
			f.late(fmt.Sprintf("the flow was open for longer than it may (max_duration_seconds: %.0f)", l.MaxDuration.Seconds()))
			continue
		}
		if f.Bytes == nil {
			continue
		}
		if n := f.Bytes.Load(); n != f.seen {
			f.seen, f.active = n, now
		} else if now.Sub(f.active) > l.Idle {
			f.late(fmt.Sprintf("the flow was idle for longer than it may (idle_timeout_seconds: %.0f)", l.Idle.Seconds()))
		}
	}
}

func (f *Flow[O]) late(why string) { f.Stop(policy.Decision{Reason: policy.ReasonOverload}, why) }

// Len counts the flows that are not hidden.
func (s *Set[O]) Len() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for f := range s.all {
		if !f.Hidden {
			n++
		}
	}
	return n
}

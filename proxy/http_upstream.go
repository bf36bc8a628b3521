package proxy

import (
	"sync"

	"egressd/policy"
	"egressd/proxy/internal/forward"
)

// upstreams forwards requests over the connections to origins that were dialled
// under one policy. The forwarder keeps them by scheme, host and port of the
// judged request, so a connection is used again only for the host and port it
// was judged and dialled for.
//
// Threat: a connection dialled while an older policy allowed its address serves
// a request after the policy changed -> each policy has its own pool, and the
// old one is closed at the swap, and once more when the last request through it
// is done -> a response that is under way at the swap goes on until it is judged
// again ([Server.Rejudge]).
type upstreams struct {
	s         *Server
	policy    *policy.Policy
	forwarder forward.Forwarder

	// Guarded by upstreamPool.mu.
	users   int  // requests under way
	retired bool // no longer in force
}

// done ends the use that upstreamsFor began.
func (u *upstreams) done() {
	u.s.pool.mu.Lock()
	u.users--
	last := u.retired && u.users == 0
	u.s.pool.mu.Unlock()
	if last {
		u.forwarder.CloseIdle()
	}
}

// upstreamPool holds the pool of the policy in force.
type upstreamPool struct {
	mu  sync.Mutex
	cur *upstreams
}

// retire closes the idle connections of the pool in use; the next request
// begins another one.
func (p *upstreamPool) retire() {
	if p.cur != nil {
		p.cur.retired = true
		p.cur.forwarder.CloseIdle()
		p.cur = nil
	}
}

// upstreamsFor reports the pool of p, or nil when p is no longer in force: the
// request must be judged again. If it is not nil, done must follow.
func (s *Server) upstreamsFor(p *policy.Policy) *upstreams {
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	if s.inForce() != p {
		return nil
	}
	if s.pool.cur == nil || s.pool.cur.policy != p {
		s.pool.retire()
		s.pool.cur = &upstreams{s: s, policy: p, forwarder: forward.New(forward.Config{
			RootCAs: s.RootCAs, Buffers: &s.bodies, Sent: &s.carried[out], Received: &s.carried[in],
		})}
	}
	s.pool.cur.users++
	return s.pool.cur
}

// closeUpstreams closes every kept connection. Requests after it open new ones.
func (s *Server) closeUpstreams() {
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	s.pool.retire()
}

// retireUpstreams closes the kept connections that were dialled under another
// policy than the one in force.
func (s *Server) retireUpstreams() {
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	if s.pool.cur != nil && s.pool.cur.policy != s.inForce() {
		s.pool.retire()
	}
}

// closeIdleUpstreams closes the kept connections, for their descriptors.
func (s *Server) closeIdleUpstreams() {
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	if s.pool.cur != nil {
		s.pool.cur.forwarder.CloseIdle()
	}
}

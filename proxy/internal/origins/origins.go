// Package origins keeps the connections to origins, apart for each policy and for
// each client that logs in by connection.
//
//	pool := pools.For(policy, inForce, newForwarder)
//	if pool == nil {
//		// another policy is in force: judge again
//	}
//	defer pool.Done()
//	pool.Forward(ctx, exchange)
package origins

import (
	"net/http"
	"strings"
	"sync"

	"egressd/policy"
	"egressd/proxy/internal/forward"
)

// Pool forwards requests over the connections to origins that were dialled under
// one policy. The forwarder keeps them by scheme, host and port of the judged
// request, so a connection is used again only for the host and port it was judged
// and dialled for.
//
// Threat: a connection dialled while an older policy allowed its address serves
// a request after the policy changed -> each policy has its own pool, and the
// old one is closed at the swap, and once more when the last request through it
// is done -> a response that is under way at the swap goes on until it is judged
// again (proxy.Server.Rejudge).
type Pool struct {
	forward.Forwarder
	Policy *policy.Policy

	of *Pools
	// Guarded by of.mu.
	users   int  // requests under way
	retired bool // no longer in force
}

// Done ends the use that For began.
func (p *Pool) Done() {
	p.of.mu.Lock()
	p.users--
	last := p.retired && p.users == 0
	p.of.mu.Unlock()
	if last {
		p.CloseIdle()
	}
}

// Pools holds the pool of the policy in force. The zero Pools is empty and ready.
// Safe for concurrent use.
type Pools struct {
	mu  sync.Mutex
	cur *Pool
}

// For reports the pool of want, or nil when want is no longer in force: the
// request must be judged again. If it is not nil, Done must follow.
func (p *Pools) For(want *policy.Policy, inForce func() *policy.Policy, make func() forward.Forwarder) *Pool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if inForce() != want {
		return nil
	}
	if p.cur == nil || p.cur.Policy != want {
		p.retire()
		p.cur = &Pool{Forwarder: make(), Policy: want, of: p}
	}
	p.cur.users++
	return p.cur
}

// retire closes the idle connections of the pool in use; the next request
// begins another one.
func (p *Pools) retire() {
	if p.cur != nil {
		p.cur.retired = true
		p.cur.CloseIdle()
		p.cur = nil
	}
}

// Close closes every kept connection. Requests after it open new ones.
func (p *Pools) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.retire()
}

// Retire closes the kept connections that were dialled under another policy than
// inForce reports.
func (p *Pools) Retire(inForce func() *policy.Policy) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cur != nil && p.cur.Policy != inForce() {
		p.retire()
	}
}

// CloseIdle closes the kept connections, for their descriptors.
func (p *Pools) CloseIdle() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cur != nil {
		p.cur.CloseIdle()
	}
}

// BoundLogin reports whether one of the fields of h named field, Authorization or
// Www-Authenticate, speaks a scheme that logs in a connection, not a request: NTLM,
// Negotiate (RFC 4559) or Kerberos.
//
// Threat: one client logs in so, and the connection, which the origin takes for
// that person from then on, next carries another client's requests -> from the
// first such field on, a client's requests use connections of their own, which
// are closed with its connection. Left over: logins by connection that no field
// shows.
func BoundLogin(h http.Header, field string) bool {
	for _, v := range h[field] {
		for part := range strings.SplitSeq(v, ",") {
			scheme, _, _ := strings.Cut(strings.TrimLeft(part, " \t"), " ")
			switch strings.ToLower(scheme) {
			case "ntlm", "negotiate", "kerberos", "nego2":
				return true
			}
		}
	}
	return false
}

package proxy

import (
	"context"
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"

	"egressd/event"
	"egressd/policy"
	"egressd/proxy/internal/http1"
	"egressd/proxy/internal/inbound"
	"egressd/proxy/internal/origins"
	"egressd/proxy/internal/override"
	"egressd/proxy/internal/secret"
)

// exchange is one request and its response.
type exchange struct {
	h     *httpConn
	sc    scope
	facts http1.Request
	w     *inbound.Writer
	r     *http.Request
	times

	req policy.Request
	dec policy.Decision
	rec event.OnRecord // not a byte of the request leaves before it allows that
	up  *origins.Pool

	content  allowance
	end      context.CancelCauseFunc // ends the exchange from outside
	ended    atomic.Pointer[endedBy]
	last     bool // the connection ends with this response
	upgraded bool // the connection speaks another protocol from here on
}

// times are when the parts of an exchange began.
type times struct {
	start time.Time
	sent  atomic.Int64 // nanoseconds from start to the request's first byte; 0: not sent
}

// allowance is what content may go both ways.
type allowance struct {
	mask  *secret.Mask // of what comes back; nil: no secret goes there
	limit int64
	moved atomic.Int64
}

// endedBy is why the gate ended an exchange: a new policy, a limit in time.
type endedBy struct {
	d   policy.Decision
	why string
}

func (e *endedBy) Error() string { return e.why }

// serve answers the request: judge, then forward or deny.
func (x *exchange) serve() {
	if x.facts.Err != nil {
		x.malformed(x.facts.Err.Detail, x.facts.Err.Status)
		return
	}
	req, bad := x.sc.target(x.facts)
	x.req = req
	if bad != "" {
		x.req.Host, x.req.Port = policy.Host{}, 0
		x.malformed(bad, 0)
		return
	}
	if origins.BoundLogin(x.r.Header, "Authorization") {
		x.h.bind()
	}
	for {
		p := x.h.s.inForce()
		x.req.Head = x.head(p)
		x.dec = x.h.s.judge(x.r.Context(), x.h.c, x.req)
		if !x.dec.Allowed() {
			x.denyAtOnce("")
			return
		}
		// A connection that was dialled under one policy serves requests that
		// were judged by that policy alone.
		if x.up = x.h.pools().For(p, x.h.s.inForce, x.h.s.newForwarder); x.up != nil {
			break
		}
	}
	x.forward()
}

// head reports what the policy asks about the head of the request; nil: nothing.
func (x *exchange) head(p *policy.Policy) *policy.Head {
	if !p.NeedsHead() {
		return nil
	}
	head := new(policy.Head)
	override.Find(head, x.r.Header, x.facts.Query)
	head.Placed = x.h.s.secretsOf(p).InHead(x.facts.Path, x.facts.Query, x.r.Header)
	return head
}

// secretsOf reports the secrets of p, with their values; nil: none.
func (s *Server) secretsOf(p *policy.Policy) *secret.Set { return s.values.Of(p, s.SecretValue) }

// misplaced judges a placeholder that was met behind the head of the request: in
// its content or its trailers. The denial is recorded here, since the head may have
// left already.
func (x *exchange) misplaced(env string) error {
	r := x.req
	r.Head = &policy.Head{Placed: map[string][]string{env: {""}}}
	d := x.h.s.check(x.h.c, r)
	rec := x.h.s.onRecord()
	ev := x.h.s.decisionEvent(x.sc, r, d, netip.AddrPort{})
	ev.Error = "in the content"
	if d.Allowed() && rec.Allow(x.h.s.stamp(ev)) {
		return nil // the policy audits
	}
	rec.Deny(x.h.s.stamp(ev))
	return &misplacedError{d}
}

// misplacedError is a denial that is on record.
type misplacedError struct{ d policy.Decision }

func (e *misplacedError) Error() string { return "denied: " + e.d.Reason.String() }

// inTrailers is misplaced for what follows the content.
func (x *exchange) inTrailers() error {
	for env := range x.h.s.secretsOf(x.up.Policy).InHead("", "", x.r.Trailer) {
		if err := x.misplaced(env); err != nil {
			return err
		}
	}
	return nil
}

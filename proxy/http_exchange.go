package proxy

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"egressd/event"
	"egressd/policy"
	"egressd/proxy/internal/http1"
)

// exchange is one request and its response.
type exchange struct {
	h     *httpConn
	sc    scope
	facts http1.Request
	w     http.ResponseWriter
	r     *http.Request
	start time.Time

	req policy.Request
	dec policy.Decision
	rec event.OnRecord // not a byte of the request leaves before it allows that
	up  *upstreams

	content  allowance
	end      context.CancelCauseFunc // ends the exchange from outside
	ended    atomic.Pointer[endedBy]
	last     bool // the connection ends with this response
	upgraded bool // the connection speaks another protocol from here on
}

// allowance is how much content may go both ways.
type allowance struct {
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
	for {
		p := x.h.s.inForce()
		x.dec = x.h.s.judge(x.r.Context(), x.h.c, x.req)
		if !x.dec.Allowed() {
			x.denyAtOnce("")
			return
		}
		// A connection that was dialled under one policy serves requests that
		// were judged by that policy alone.
		if x.up = x.h.s.upstreamsFor(p); x.up != nil {
			break
		}
	}
	x.forward()
}

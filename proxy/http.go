package proxy

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"net/netip"
	"time"

	"egressd/policy"
	"egressd/proxy/internal/http1"
	"egressd/proxy/internal/inbound"
	"egressd/proxy/internal/origins"
	"egressd/proxy/internal/wire"
)

// Implementation constants.
const (
	httpIdleTimeout  = 2 * time.Minute // between two requests of a kept-alive client
	httpStallTimeout = 5 * time.Minute // a client that neither sends its body nor takes ours
)

// httpConn serves the requests of one client connection: http1 reads them
// strictly, and each is judged on its own.
type httpConn struct {
	s    *Server // the judge
	c    *conn
	sc   scope
	ctx  context.Context // of the connection
	gate *http1.Conn

	served bool           // a request has been answered
	bound  *origins.Pools // of a client that logs in by connection; nil: it does not
}

// serveHTTP serves HTTP/1 on in, which is what c carries, within sc until in is
// done. It closes in. Bytes that were read to recognise the protocol are read
// again from in.
func (s *Server) serveHTTP(ctx context.Context, c *conn, in net.Conn, sc scope) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	b := s.bounds()
	gate := http1.NewConn(in)
	gate.HeadBytes = b.headBytes
	gate.HeadTimeout = b.headTimeout
	gate.IdleTimeout = httpStallTimeout
	gate.EndGrace = cmp.Or(s.endGrace, gate.EndGrace)
	gate.Grow = s.held.Change
	defer gate.Release()
	h := &httpConn{s: s, c: c, sc: sc, ctx: ctx, gate: gate}
	stop := context.AfterFunc(ctx, gate.Abort)
	defer stop()
	defer h.trackHost()()
	defer h.unbind()
	c.idle()
	c.whenDraining(gate.Drain)
	defer c.whenDraining(nil)
	start := time.Now()
	serving := inbound.Conn{Wire: gate, Handle: h.handle, First: b.headTimeout, Idle: httpIdleTimeout, Buffers: &s.heads}
	serving.Serve(ctx)
	_ = in.Close()
	h.reportUnspoken(time.Since(start) >= b.headTimeout)
}

// trackHost ends a connection that stands for one host when a new policy denies
// that host, also between two requests.
func (h *httpConn) trackHost() (release func()) {
	under := h.s.inForce()
	r := policy.Request{Host: h.sc.host, Port: h.sc.port, Wire: policy.WireHTTP, HTTPHost: h.sc.host}
	if h.sc.tls {
		r.Wire, r.SNI = policy.WireTLS, h.sc.host.SNI()
	}
	if h.sc.host.IsZero() || !h.s.check(h.c, r).Allowed() {
		return func() {} // the answers say so, request by request
	}
	t := &openFlow{Owner: h.c, Request: &r, Stop: h.stop, Hidden: true}
	h.s.track(t, under)
	return func() { h.s.untrack(t) }
}

// stop ends the connection: the policy now in force denies its host.
func (h *httpConn) stop(_ policy.Decision, why string) { h.c.end(why) }

// reportUnspoken records a connection that ended without a request, although
// its destination was known: an attempt is in the events even when the client
// says nothing that could be answered.
func (h *httpConn) reportUnspoken(late bool) {
	if h.sc.explicit() || h.sc.flow == 0 || h.served {
		return
	}
	r := policy.Request{Host: h.sc.host, Port: h.sc.port}
	if r.Host.IsZero() {
		r.Host = policy.HostFromAddr(h.sc.addr.Addr())
	}
	d, detail := h.s.check(h.c, r), ""
	switch {
	case h.c.isEvicted():
		d, detail = because(policy.ReasonOverload), evictedDetail
	case !d.Allowed():
	case h.c.endedFor() != "":
		d, detail = because(policy.ReasonNotHTTP), h.c.endedFor()
	case h.c.isDraining():
		d, detail = because(policy.ReasonNotHTTP), shuttingDown
	case late:
		d, detail = because(policy.ReasonHeadTimeout), "no request came in time"
	default:
		d = because(policy.ReasonClientClosed)
	}
	ev := h.s.decisionEvent(h.sc, r, d, netip.AddrPort{})
	ev.Error = detail
	h.s.deny(ev)
}

// handle judges, records and forwards one request.
func (h *httpConn) handle(w *inbound.Writer, r *http.Request, facts http1.Request) {
	inTime := h.c.busy()
	defer h.c.idle()
	h.served = true
	no := h.authenticate(facts)
	sc := h.sc
	if sc.flow == 0 {
		sc.flow = h.s.nextFlow()
	} else {
		h.sc.flow = 0 // the first request carries the flow of its connection, each later one its own
	}
	x := &exchange{h: h, rec: h.s.onRecord(), sc: sc, facts: facts, w: w, r: r, times: times{start: time.Now()}}
	switch {
	case !inTime:
		x.refuse(refuseFor(policy.ReasonOverload, evictedDetail))
	case no != nil:
		x.refuse(no)
	case facts.Method == http.MethodConnect && facts.Err == nil && h.sc.explicit():
		h.handOver(w, facts)
	default:
		x.serve()
	}
}

// authenticate finds the judge of a request at the explicit door. What cannot be
// read is refused without a judge.
func (h *httpConn) authenticate(facts http1.Request) *refusal {
	if !h.sc.explicit() || facts.Err != nil {
		return nil
	}
	judge, no := h.c.authenticate(wire.BasicCredentials(facts.ProxyAuth, facts.HasProxyAuth))
	if no == nil {
		h.s = judge
	}
	return no
}

// handOver gives a CONNECT that arrived on a kept-alive connection to the
// CONNECT door.
func (h *httpConn) handOver(w *inbound.Writer, facts http1.Request) {
	c, _, err := w.Hijack()
	if err != nil { // unreachable: nobody has taken the connection before
		return
	}
	serveConnect(h.ctx, h.c, c, facts.Head)
}

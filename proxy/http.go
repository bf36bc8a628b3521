package proxy

import (
	"cmp"
	"context"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"egressd/internal/http1"
	"egressd/policy"
)

// Implementation constants.
const (
	httpHeadTimeout  = 10 * time.Second // first byte of a request head to its last
	httpIdleTimeout  = 2 * time.Minute  // between two requests of a kept-alive client
	httpStallTimeout = 5 * time.Minute  // a client that neither sends its body nor takes ours
)

// httpConn serves the requests of one client connection: the strict gate frames
// them, net/http reads what the gate passes on, and each request is judged on
// its own.
type httpConn struct {
	s    *Server
	sc   scope
	ctx  context.Context // of the connection
	gate *http1.Conn

	finished chan struct{}
	finish   sync.Once
}

// serveHTTP serves HTTP/1 on c within sc until c is done. It closes c. Bytes
// that were read to recognise the protocol are read again from c.
func (s *Server) serveHTTP(ctx context.Context, c net.Conn, sc scope) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	gate := http1.NewConn(c)
	gate.HeadBytes = s.bounds().headBytes
	gate.HeadTimeout = httpHeadTimeout
	gate.IdleTimeout = httpStallTimeout
	gate.EndGrace = cmp.Or(s.endGrace, gate.EndGrace)
	h := &httpConn{s: s, sc: sc, ctx: ctx, gate: gate, finished: make(chan struct{})}
	stop := context.AfterFunc(ctx, gate.Abort)
	defer stop()
	srv := &http.Server{
		Handler:                      h,
		ConnState:                    h.connState,
		BaseContext:                  func(net.Listener) context.Context { return ctx },
		IdleTimeout:                  httpIdleTimeout,
		MaxHeaderBytes:               2 * gate.HeadBytes, // the gate's bound is the one that counts
		DisableGeneralOptionsHandler: true,               // OPTIONS * goes to the origin
		ErrorLog:                     s.debugLog(),
	}
	_ = srv.Serve(&oneConn{conn: gate, h: h}) // always errConnDone
	_ = c.Close()
	h.reportUnspoken()
}

// reportUnspoken records a connection that ended without a request, where its
// destination alone is denied: an attempt is in the events even when the
// client says nothing that could be answered.
func (h *httpConn) reportUnspoken() {
	if h.explicit() || h.sc.flow == 0 {
		return
	}
	r := policy.Request{Host: h.sc.host, Port: h.sc.port}
	if r.Host.IsZero() {
		r.Host = policy.HostFromAddr(h.sc.addr.Addr())
	}
	if d := h.s.look(h.ctx, r); !d.Allowed() {
		if err := h.s.record(h.s.decisionEvent(h.sc, r, d, "")); err != nil {
			h.s.log().Error("a denial was not recorded", "err", err)
		}
	}
}

// debugLog takes net/http's complaints about clients that break off.
func (s *Server) debugLog() *log.Logger {
	if s.Log == nil {
		return log.New(io.Discard, "", 0)
	}
	return slog.NewLogLogger(s.Log.Handler(), slog.LevelDebug)
}

// connState learns when net/http is done with the connection.
func (h *httpConn) connState(_ net.Conn, st http.ConnState) {
	if st == http.StateClosed {
		h.done()
	}
}

func (h *httpConn) done() { h.finish.Do(func() { close(h.finished) }) }

// ServeHTTP judges, records and forwards one request.
func (h *httpConn) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	facts, ok := h.gate.Next()
	if !ok { // unreachable: the gate passes no head without its facts
		denial{dec: policy.Decision{Reason: policy.ReasonInternal}, close: true}.write(w, r)
		return
	}
	defer h.gate.Resume()
	sc := h.sc
	if sc.flow == 0 {
		sc.flow = h.s.newFlow()
	} else {
		h.sc.flow = 0 // the first request carries the flow of its connection, each later one its own
	}
	if facts.Method == http.MethodConnect && facts.Err == nil && h.explicit() {
		h.handOver(w, facts)
		return
	}
	x := &exchange{h: h, sc: sc, facts: facts, w: w, r: r, start: time.Now()}
	x.serve()
}

// explicit reports whether this is the proxy's own door, where absolute-form
// names the host.
func (h *httpConn) explicit() bool { return h.sc.host.IsZero() && !h.sc.captured }

// handOver gives a CONNECT that arrived on a kept-alive connection to the
// CONNECT door.
func (h *httpConn) handOver(w http.ResponseWriter, facts http1.Request) {
	c, rw, err := http.NewResponseController(w).Hijack()
	if err != nil { // unreachable: HTTP/1 connections can be hijacked once
		return
	}
	defer h.done()
	h.s.serveConnect(h.ctx, &replayConn{Conn: c, r: rw.Reader}, facts.Head, h.sc.client)
}

package forward

import (
	"bufio"
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"egressd/proxy/internal/pool"
)

const patience = 10 * time.Second // of a test that fails

// rig is a forwarder between a client and the script of an origin.
type rig struct {
	t      *testing.T
	p      *proxy
	gate   *openGate
	client string // where clients connect
	done   chan Outcome
	conns  atomic.Int64 // that the origin has accepted
}

// openGate lets everything pass.
type openGate struct {
	origin string
	passes atomic.Int64
	no     atomic.Pointer[error] // of Pass
	dials  chan net.Conn         // gets each connection, if it is not nil
	change func(*http.Request)   // as it leaves; nil: not at all
}

func (g *openGate) Dial(ctx context.Context) (net.Conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, "tcp", g.origin)
	if err == nil && g.dials != nil {
		g.dials <- c
	}
	return c, err
}

func (g *openGate) Pass(net.Addr) error {
	g.passes.Add(1)
	if no := g.no.Load(); no != nil {
		return *no
	}
	return nil
}

func (g *openGate) Outgoing(r *http.Request) {
	if g.change != nil {
		g.change(r)
	}
}
func (*openGate) Incoming(*http.Response) error { return nil }
func (*openGate) Fields(http.Header)            {}
func (*openGate) Count(int) error               { return nil }
func (*openGate) Upgraded()                     {}
func (*openGate) Survive(func())                {}

// newRig starts a forwarder whose origin runs serve for each connection, the
// first of which is number 1.
func newRig(t *testing.T, serve func(n int64, c net.Conn, r *bufio.Reader)) *rig {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, gate: &openGate{origin: ln.Addr().String()}, done: make(chan Outcome, 16)}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			n := r.conns.Add(1)
			_ = c.SetDeadline(time.Now().Add(2 * patience))
			wg.Go(func() { defer c.Close(); serve(n, c, bufio.NewReader(c)) })
		}
	})
	r.p = New(Config{Buffers: new(pool.Buffers), Sent: new(atomic.Uint64), Received: new(atomic.Uint64)}).(*proxy)
	r.p.patience = time.Hour
	srv := httptest.NewUnstartedServer(http.HandlerFunc(r.handle))
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.Start()
	r.client = srv.Listener.Addr().String()
	t.Cleanup(func() {
		srv.CloseClientConnections()
		srv.Close()
		r.p.CloseIdle()
		_ = ln.Close()
		wg.Wait()
	})
	return r
}

func (r *rig) handle(w http.ResponseWriter, req *http.Request) {
	o := r.p.Forward(req.Context(), Exchange{
		Request: req, Writer: w, Host: "origin.test:80", HostField: "origin.test", Path: req.URL.Path, Gate: r.gate,
	})
	r.done <- o
	switch {
	case o.Failed != nil:
		w.WriteHeader(http.StatusBadGateway)
	case o.Broken != nil:
		panic(http.ErrAbortHandler)
	}
}

// dial is a client.
func (r *rig) dial() (net.Conn, *bufio.Reader) {
	c, err := net.Dial("tcp", r.client)
	if err != nil {
		r.t.Fatal(err)
	}
	_ = c.SetDeadline(time.Now().Add(2 * patience))
	r.t.Cleanup(func() { _ = c.Close() })
	return c, bufio.NewReader(c)
}

// fetch sends a request on a connection of its own and reports the status of the
// final response, its content and the error at its end.
func (r *rig) fetch(request string) (status int, body string, err error) {
	r.t.Helper()
	c, br := r.dial()
	defer c.Close()
	_, _ = io.WriteString(c, request)
	method, _, _ := strings.Cut(request, " ")
	resp, err := http.ReadResponse(br, &http.Request{Method: method})
	if err != nil {
		return 0, "", err
	}
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), err
}

// outcome is that of the next exchange to end.
func (r *rig) outcome() Outcome {
	r.t.Helper()
	select {
	case o := <-r.done:
		return o
	case <-time.After(patience):
		r.t.Fatal("the exchange does not end")
		return Outcome{}
	}
}

// head reads one head as it stands on the wire; "" at the end.
func head(r *bufio.Reader) string {
	var b strings.Builder
	for {
		line, err := r.ReadString('\n')
		b.WriteString(line)
		if err != nil || line == "\r\n" {
			return b.String()
		}
	}
}

const (
	get  = "GET /a HTTP/1.1\r\nHost: origin.test\r\n\r\n"
	post = "POST /a HTTP/1.1\r\nHost: origin.test\r\nContent-Length: 4\r\n\r\nbody"
	fine = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
)

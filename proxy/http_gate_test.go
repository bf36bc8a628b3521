package proxy

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"egressd/event"
	"egressd/event/eventtest"
	"egressd/policy"
)

const patience = 10 * time.Second

// eventLog keeps what the gate reports.
type eventLog struct {
	mu   sync.Mutex
	all  []eventtest.Line
	fail error
}

func (l *eventLog) Emit(e event.Event) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fail != nil {
		return l.fail
	}
	l.all = append(l.all, eventtest.Of(e))
	return nil
}

// decisions reports "allowed|blocked METHOD host:port path reason" in order.
func (l *eventLog) decisions() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []string
	for _, e := range l.all {
		if e.Type == "network.connected" {
			out = append(out, fmt.Sprintf("%s %s %s:%d %s %s", e.Decision, e.Method, e.Host, e.Port, e.Path, e.Reason))
		}
	}
	return out
}

func (l *eventLog) find(typ string) []eventtest.Line {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []eventtest.Line
	for _, e := range l.all {
		if e.Type == typ {
			out = append(out, e)
		}
	}
	return out
}

// webGate is a gate with its explicit door on loopback. Every dial, whatever
// the port, goes to the origin.
type webGate struct {
	t      testing.TB
	s      *Server
	addr   string
	events *eventLog
	dials  atomic.Int64
	closed func()
}

// policyOf compiles allow rules with static addresses for the test names.
func policyOf(t testing.TB, allow ...string) *policy.Policy {
	t.Helper()
	doc := &policy.Document{}
	for i, text := range allow {
		doc.Allow = append(doc.Allow, policy.Entry{Text: text, Pos: policy.Pos{File: "--allow", Line: i + 1}})
	}
	for _, name := range []string{"origin.test", "other.test", "denied.test"} {
		doc.Hosts = append(doc.Hosts, policy.Entry{Text: name + "=127.0.0.1"})
	}
	p, err := policy.Compile(doc)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func newWebGate(t testing.TB, origin string, allow ...string) *webGate {
	t.Helper()
	g := &webGate{t: t, events: &eventLog{}}
	// A client that has gone looks like one that waits for its response.
	g.s = &Server{Policy: new(policy.Current), Events: g.events, state: state{seams: seams{endGrace: time.Second}}}
	g.s.Policy.Store(policyOf(t, allow...))
	g.s.dialFunc = func(ctx context.Context, d *net.Dialer, network, address string) (net.Conn, error) {
		g.dials.Add(1)
		if err := d.ControlContext(ctx, network, address, nil); err != nil {
			return nil, err
		}
		return (&net.Dialer{}).DialContext(ctx, network, origin)
	}
	g.serve(g.s.Serve)
	return g
}

// serve runs one Serve until the test ends.
func (g *webGate) serve(run func(context.Context, net.Listener) error) {
	g.t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		g.t.Fatal(err)
	}
	g.addr = ln.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- run(ctx, ln) }()
	var once sync.Once
	g.closed = func() {
		once.Do(func() {
			cancel()
			select {
			case err := <-done:
				if err != nil {
					g.t.Error(err)
				}
			case <-time.After(patience):
				g.t.Error("Serve did not return")
			}
		})
	}
	g.t.Cleanup(g.closed)
}

// client is a real HTTP client behind the gate.
func (g *webGate) client() *http.Client {
	tr := &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: g.addr}), DisableCompression: true}
	g.t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: 2 * patience, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// rawConn is a client that says exactly what it is told to.
type rawConn struct {
	t testing.TB
	net.Conn
	r *bufio.Reader
}

func (g *webGate) dial() *rawConn {
	g.t.Helper()
	c, err := net.Dial("tcp", g.addr)
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(patience))
	return &rawConn{t: g.t, Conn: c, r: bufio.NewReader(c)}
}

func (c *rawConn) send(s string) {
	c.t.Helper()
	if _, err := io.WriteString(c.Conn, s); err != nil {
		c.t.Fatalf("send: %v", err)
	}
}

// response reads one response with its body.
func (c *rawConn) response(method string) (*http.Response, string) {
	c.t.Helper()
	resp, err := http.ReadResponse(c.r, &http.Request{Method: method})
	if err != nil {
		c.t.Fatalf("response: %v", err)
	}
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatalf("response body: %v", err)
	}
	return resp, string(b)
}

// webOrigin is a server on loopback that counts its connections.
type webOrigin struct {
	addr  string
	conns atomic.Int64
}

func newWebOrigin(t testing.TB, h http.HandlerFunc) *webOrigin {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o := &webOrigin{addr: ln.Addr().String()}
	srv := &http.Server{Handler: h, ConnState: func(_ net.Conn, st http.ConnState) {
		if st == http.StateNew {
			o.conns.Add(1)
		}
	}}
	done := make(chan struct{})
	go func() { defer close(done); _ = srv.Serve(ln) }()
	t.Cleanup(func() { _ = srv.Close(); <-done })
	return o
}

// rawOrigin hands each connection to serve.
func rawOrigin(t testing.TB, serve func(c net.Conn, r *bufio.Reader)) *webOrigin {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o := &webOrigin{addr: ln.Addr().String()}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			o.conns.Add(1)
			_ = c.SetDeadline(time.Now().Add(2 * patience))
			wg.Go(func() { defer c.Close(); serve(c, bufio.NewReader(c)) })
		}
	})
	t.Cleanup(func() { _ = ln.Close(); wg.Wait() })
	return o
}

// readHead reads one head as it stands on the wire.
func rawHead(t testing.TB, r *bufio.Reader) string {
	var b strings.Builder
	for {
		line, err := r.ReadString('\n')
		b.WriteString(line)
		if err != nil || line == "\r\n" {
			return b.String()
		}
	}
}

func fetch(t testing.TB, c *http.Client, u string) (*http.Response, string) {
	t.Helper()
	resp, err := c.Get(u)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(b)
}

func equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func wantEvents(t testing.TB, l *eventLog, want ...string) {
	t.Helper()
	if got := l.decisions(); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("events:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// settles waits until f holds; the runtime offers nothing to wait on.
func settles(f func() bool) bool {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); runtime.Gosched() {
		if f() {
			return true
		}
	}
	return false
}

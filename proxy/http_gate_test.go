package proxy

import (
	"bufio"
	"context"
	"errors"
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
	"egressd/policy"
)

const patience = 10 * time.Second

// eventLog keeps what the gate reports.
type eventLog struct {
	mu   sync.Mutex
	all  []event.Event
	fail error
}

func (l *eventLog) Emit(e event.Event) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fail != nil {
		return l.fail
	}
	l.all = append(l.all, e)
	return nil
}

// decisions reports "allowed|blocked METHOD host:port path reason" in order.
func (l *eventLog) decisions() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []string
	for _, e := range l.all {
		if e.Type == event.NetworkConnected {
			out = append(out, fmt.Sprintf("%s %s %s:%d %s %s", e.Decision, e.Method, e.Host, e.Port, e.Path, e.Reason))
		}
	}
	return out
}

func (l *eventLog) find(typ event.Type) []event.Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []event.Event
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
	g.s = &Server{Policy: new(policy.Current), Events: g.events}
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

func TestHTTPForwards(t *testing.T) {
	heads := make(chan string, 1)
	o := rawOrigin(t, func(c net.Conn, r *bufio.Reader) {
		heads <- rawHead(t, r)
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\nConnection: X-Hop, keep-alive\r\nX-Hop: 1\r\nKeep-Alive: timeout=5\r\nProxy-Authenticate: Basic\r\n\r\nok")
	})
	g := newWebGate(t, o.addr, "origin.test")
	c := g.dial()
	c.send("GET http://Origin.TEST/a%2Fb/{x}//%7e?q=%20&r HTTP/1.1\r\nHost: origin.test\r\nX-A: 1\r\nX-A: 2\r\nAccept-Encoding: br\r\n" +
		"Connection: X-Hop, TE\r\nX-Hop: 1\r\nTE: trailers, deflate\r\nProxy-Connection: keep-alive\r\nProxy-Authorization: Basic xx\r\nKeep-Alive: 5\r\n\r\n")
	resp, body := c.response("GET")
	equal(t, "status", resp.StatusCode, 200)
	equal(t, "body", body, "ok")
	equal(t, "cookies", len(resp.Header["Set-Cookie"]), 2)
	for _, name := range []string{"X-Hop", "Keep-Alive", "Proxy-Authenticate", "Via", "Date", "Content-Type"} {
		if v, ok := resp.Header[name]; ok {
			t.Errorf("response has %s: %q", name, v)
		}
	}
	want := "GET /a%2Fb/{x}//%7e?q=%20&r HTTP/1.1\r\nHost: origin.test\r\nAccept-Encoding: br\r\nTe: trailers\r\nX-A: 1\r\nX-A: 2\r\n\r\n"
	if seen := <-heads; seen != want {
		t.Errorf("the origin saw\n%q, want\n%q", seen, want)
	}
	wantEvents(t, g.events, "allowed GET origin.test:80 /a%2Fb/{x}//%7e allowed")
	if !settles(func() bool { return len(g.events.find(event.NetworkClosed)) == 1 }) {
		t.Fatal("no network.closed")
	}
	if e := g.events.find(event.NetworkClosed)[0]; e.BytesIn != 2 || e.Flow == 0 {
		t.Errorf("closed: %+v", e)
	}
	if e := g.events.find(event.NetworkConnected)[0]; e.Addr != o.addr || e.Door != event.DoorHTTP || e.Rule != "origin.test" {
		t.Errorf("connected: %+v", e)
	}
}

func TestHTTPPathsStayAsSent(t *testing.T) {
	heads := make(chan string, 1)
	o := rawOrigin(t, func(c net.Conn, r *bufio.Reader) {
		for {
			h := rawHead(t, r)
			if h == "" {
				return
			}
			heads <- h
			_, _ = io.WriteString(c, "HTTP/1.1 204 No Content\r\n\r\n")
		}
	})
	g := newWebGate(t, o.addr, "origin.test")
	c := g.dial()
	for _, target := range []string{"/", "/%2e%2e/x", "//double", "//double/%2F", "/a;b=c", "/[x]", "/a|b", "/?", "/x??y"} {
		c.send("GET http://origin.test" + target + " HTTP/1.1\r\nHost: origin.test\r\n\r\n")
		resp, _ := c.response("GET")
		equal(t, "status of "+target, resp.StatusCode, 204)
		line, _, _ := strings.Cut(<-heads, "\r\n")
		equal(t, "request line", line, "GET "+target+" HTTP/1.1")
	}
}

func TestHTTPDenialTeaches(t *testing.T) {
	o := newWebOrigin(t, func(http.ResponseWriter, *http.Request) {})
	g := newWebGate(t, o.addr, "origin.test")
	resp, body := fetch(t, g.client(), "http://denied.test/x?secret=1")
	equal(t, "status", resp.StatusCode, 403)
	equal(t, "reason", resp.Header.Get("X-Egressd-Reason"), "host_not_listed")
	equal(t, "type", resp.Header.Get("Content-Type"), "text/plain; charset=utf-8")
	if ps := resp.Header.Get("Proxy-Status"); !strings.HasPrefix(ps, `egressd; error=http_request_denied; details="`) {
		t.Errorf("Proxy-Status: %s", ps)
	}
	for _, want := range []string{"denied.test:80", "no rule allows this host", "--allow denied.test\n"} {
		if !strings.Contains(body, want) {
			t.Errorf("body %q does not hold %q", body, want)
		}
	}
	equal(t, "dials", g.dials.Load(), 0)
	wantEvents(t, g.events, "blocked GET denied.test:80 /x host_not_listed")
}

func TestHTTPDenialOfHEAD(t *testing.T) {
	g := newWebGate(t, "", "origin.test")
	c := g.dial()
	for range 2 { // the connection stays in step
		c.send("HEAD http://denied.test/ HTTP/1.1\r\nHost: denied.test\r\n\r\n")
		resp, body := c.response("HEAD")
		if resp.StatusCode != 403 || body != "" || resp.ContentLength < 50 {
			t.Errorf("got %d, %d bytes, Content-Length %d", resp.StatusCode, len(body), resp.ContentLength)
		}
	}
}

func TestHTTPEachRequestIsJudged(t *testing.T) {
	o := newWebOrigin(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Host) })
	g := newWebGate(t, o.addr, "origin.test", "other.test")
	c := g.dial()
	for _, tt := range []struct {
		url, host string
		status    int
	}{
		{"http://origin.test/1", "origin.test", 200},
		{"http://denied.test/2", "denied.test", 403},
		{"http://other.test/3", "other.test", 200},
		{"http://origin.test/4", "denied.test", 403},
		{"http://origin.test/5", "other.test", 403},
		{"http://origin.test:81/6", "origin.test:81", 403},
		{"http://origin.test/7", "origin.test:81", 403},
		{"http://127.0.0.1/8", "127.0.0.1", 403},
		{"http://origin.test:443/9", "origin.test:443", 403},
	} {
		c.send("GET " + tt.url + " HTTP/1.1\r\nHost: " + tt.host + "\r\n\r\n")
		resp, _ := c.response("GET")
		equal(t, tt.url+" Host "+tt.host, resp.StatusCode, tt.status)
	}
	wantEvents(t, g.events,
		"allowed GET origin.test:80 /1 allowed",
		"blocked GET denied.test:80 /2 host_not_listed",
		"allowed GET other.test:80 /3 allowed",
		"blocked GET origin.test:80 /4 host_mismatch",
		"blocked GET origin.test:80 /5 host_mismatch",
		"blocked GET origin.test:81 /6 port_not_listed",
		"blocked GET origin.test:80 /7 host_mismatch",
		"blocked GET 127.0.0.1:80 /8 destination_ip_prohibited",
		"blocked GET origin.test:443 /9 not_tls",
	)
	equal(t, "dials", g.dials.Load(), 2)
}

// What cannot be read in one way only is answered 400 and reaches nobody, and
// nothing behind it does.
func TestHTTPSmuggling(t *testing.T) {
	o := newWebOrigin(t, func(http.ResponseWriter, *http.Request) {})
	const h = "Host: origin.test\r\n"
	for name, head := range map[string]string{
		"origin-form":            "GET / HTTP/1.1\r\n" + h + "\r\n",
		"https URL":              "GET https://origin.test/ HTTP/1.1\r\n" + h + "\r\n",
		"length and encoding":    "POST http://origin.test/ HTTP/1.1\r\n" + h + "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"two lengths":            "POST http://origin.test/ HTTP/1.1\r\n" + h + "Content-Length: 0\r\nContent-Length: 5\r\n\r\nhello",
		"encoding list":          "POST http://origin.test/ HTTP/1.1\r\n" + h + "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
		"two hosts":              "GET http://origin.test/ HTTP/1.1\r\n" + h + "Host: denied.test\r\n\r\n",
		"no host":                "GET http://origin.test/ HTTP/1.1\r\n\r\n",
		"fold":                   "GET http://origin.test/ HTTP/1.1\r\n" + h + "X: 1\r\n 2\r\n\r\n",
		"space before the colon": "GET http://origin.test/ HTTP/1.1\r\nHost : origin.test\r\n\r\n",
		"bare LF":                "GET http://origin.test/ HTTP/1.1\n" + h + "\r\n",
		"bare CR":                "GET http://origin.test/ HTTP/1.1\r\n" + h + "X: a\rY: b\r\n\r\n",
		"nul":                    "GET http://origin.test/ HTTP/1.1\r\n" + h + "X: \x00\r\n\r\n",
		"userinfo":               "GET http://origin.test@denied.test/ HTTP/1.1\r\n" + h + "\r\n",
		"fragment":               "GET http://origin.test/#x HTTP/1.1\r\n" + h + "\r\n",
		"0.9":                    "GET http://origin.test/\r\n\r\n",
		"h2c prior knowledge":    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"odd IPv4":               "GET http://0x7f.1/ HTTP/1.1\r\nHost: 0x7f.1\r\n\r\n",
		"leading zero in a port": "GET http://origin.test:080/ HTTP/1.1\r\n" + h + "\r\n",
		"bracketed name":         "GET http://[origin.test]/ HTTP/1.1\r\n" + h + "\r\n",
		"empty port":             "GET http://origin.test:/ HTTP/1.1\r\n" + h + "\r\n",
		"zone":                   "GET http://[fe80::1%25lo]/ HTTP/1.1\r\nHost: [fe80::1%25lo]\r\n\r\n",
		"Host with a bad port":   "GET http://origin.test/ HTTP/1.1\r\nHost: origin.test:x\r\n\r\n",
		"Host with a backslash":  "GET http://origin.test/ HTTP/1.1\r\nHost: origin.test\\x\r\n\r\n",
		"large head":             "GET http://origin.test/ HTTP/1.1\r\n" + h + "X: " + strings.Repeat("x", 40<<10) + "\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			g := newWebGate(t, o.addr, "origin.test")
			c := g.dial()
			c.send(head + "GET http://origin.test/smuggled HTTP/1.1\r\nHost: origin.test\r\n\r\n")
			resp, body := c.response("GET")
			if resp.StatusCode < 400 || resp.StatusCode >= 500 || resp.StatusCode == 403 {
				t.Errorf("status %d", resp.StatusCode)
			}
			equal(t, "reason", resp.Header.Get("X-Egressd-Reason"), "http_request_error")
			if !strings.HasPrefix(body, "egressd: the request was blocked.\nReason: ") || strings.Contains(body, "--allow") {
				t.Errorf("body %q", body)
			}
			if rest, err := io.ReadAll(c.r); len(rest) > 0 || err != nil {
				t.Errorf("after the refusal: %q, %v", rest, err)
			}
			if ds := g.events.decisions(); len(ds) != 1 || !strings.HasPrefix(ds[0], "blocked ") || !strings.HasSuffix(ds[0], "http_request_error") {
				t.Errorf("events %q", ds)
			}
			equal(t, "dials", g.dials.Load(), 0)
		})
	}
}

func TestHTTPBodyThatTurnsMalformed(t *testing.T) {
	ended := make(chan error, 1)
	o := newWebOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		_, err := io.Copy(io.Discard, r.Body)
		ended <- err
	})
	g := newWebGate(t, o.addr, "origin.test")
	c := g.dial()
	c.send("POST http://origin.test/ HTTP/1.1\r\nHost: origin.test\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n+5\r\nworld\r\n0\r\n\r\nGET http://origin.test/ HTTP/1.1\r\nHost: origin.test\r\n\r\n")
	resp, _ := c.response("POST")
	equal(t, "status", resp.StatusCode, 400)
	if err := <-ended; err == nil {
		t.Error("the origin took the body for whole")
	}
	if rest, _ := io.ReadAll(c.r); len(rest) > 0 {
		t.Errorf("after the refusal: %q", rest)
	}
	wantEvents(t, g.events, "allowed POST origin.test:80 / allowed", "blocked POST origin.test:80 / http_request_error")
}

func TestHTTPConnectOnAKeptConnection(t *testing.T) {
	o := newWebOrigin(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.URL.Path) })
	g := newWebGate(t, o.addr, "origin.test")
	c := g.dial()
	c.send("GET http://origin.test/first HTTP/1.1\r\nHost: origin.test\r\n\r\n")
	c.response("GET")
	c.send("CONNECT origin.test:80 HTTP/1.1\r\nHost: origin.test:80\r\n\r\nGET /inner HTTP/1.1\r\nHost: origin.test\r\n\r\n")
	resp, err := http.ReadResponse(c.r, &http.Request{Method: "CONNECT"})
	if err != nil || resp.StatusCode != 200 {
		t.Fatalf("CONNECT: %v %v", resp, err)
	}
	resp, body := c.response("GET")
	equal(t, "status", resp.StatusCode, 200)
	equal(t, "body", body, "/inner")
	c.send("GET /x HTTP/1.1\r\nHost: denied.test\r\n\r\n")
	resp, _ = c.response("GET")
	equal(t, "other Host inside", resp.StatusCode, 403)
	c.send("GET http://origin.test/abs HTTP/1.1\r\nHost: origin.test:80\r\n\r\n")
	_, body = c.response("GET")
	equal(t, "absolute-form inside", body, "/abs")
	c.send("GET http://denied.test/abs HTTP/1.1\r\nHost: origin.test:80\r\n\r\n")
	resp, _ = c.response("GET")
	equal(t, "other absolute-form inside", resp.StatusCode, 403)
	wantEvents(t, g.events,
		"allowed GET origin.test:80 /first allowed",
		"allowed GET origin.test:80 /inner allowed",
		"blocked GET origin.test:80 /x host_mismatch",
		"allowed GET origin.test:80 /abs allowed",
		"blocked GET origin.test:80 /abs host_mismatch")
}

func TestHTTPDeniedConnectOnAKeptConnection(t *testing.T) {
	g := newWebGate(t, "", "origin.test")
	c := g.dial()
	c.send("GET http://denied.test/ HTTP/1.1\r\nHost: denied.test\r\n\r\n")
	c.response("GET")
	c.send("CONNECT denied.test:443 HTTP/1.1\r\nHost: denied.test:443\r\n\r\nGET http://denied.test/ HTTP/1.1\r\nHost: denied.test\r\n\r\n")
	resp, body := c.response("GET")
	equal(t, "status", resp.StatusCode, 403)
	if !strings.Contains(body, "--allow denied.test\n") {
		t.Errorf("body %q", body)
	}
	if rest, _ := io.ReadAll(c.r); len(rest) > 0 {
		t.Errorf("after the refusal: %q", rest)
	}
}

func TestHTTPNotRecordedNotSent(t *testing.T) {
	got := make(chan []byte, 4)
	o := rawOrigin(t, func(c net.Conn, r *bufio.Reader) { b, _ := io.ReadAll(r); got <- b })
	g := newWebGate(t, o.addr, "origin.test")
	g.events.fail = errors.New("the disk is full")
	resp, _ := fetch(t, g.client(), "http://origin.test/")
	equal(t, "status", resp.StatusCode, 503)
	equal(t, "Retry-After", resp.Header.Get("Retry-After"), "1")
	equal(t, "bytes at the origin", len(<-got), 0)
}

// wrapRaw is a rawConn over a connection that is open already.
func wrapRaw(t testing.TB, c net.Conn) *rawConn {
	return &rawConn{t: t, Conn: c, r: bufio.NewReader(c)}
}

// OPTIONS * is for the origin, not for the gate to answer.
func TestHTTPOptionsStar(t *testing.T) {
	heads := make(chan string, 2)
	o := rawOrigin(t, func(c net.Conn, r *bufio.Reader) {
		heads <- rawHead(t, r)
		_, _ = io.WriteString(c, "HTTP/1.1 204 No Content\r\nAllow: GET\r\n\r\n")
	})
	g := newWebGate(t, o.addr, "origin.test")
	c := g.dial()
	c.send("OPTIONS http://origin.test HTTP/1.1\r\nHost: origin.test\r\n\r\n")
	resp, _ := c.response("OPTIONS")
	equal(t, "Allow", resp.Header.Get("Allow"), "GET")
	line, _, _ := strings.Cut(<-heads, "\r\n")
	equal(t, "request line", line, "OPTIONS * HTTP/1.1")

	c = g.dial()
	c.send("CONNECT origin.test:80 HTTP/1.1\r\nHost: origin.test:80\r\n\r\n")
	if _, err := http.ReadResponse(c.r, &http.Request{Method: "CONNECT"}); err != nil {
		t.Fatal(err)
	}
	c.send("OPTIONS * HTTP/1.1\r\nHost: origin.test\r\n\r\n")
	resp, _ = c.response("OPTIONS")
	equal(t, "Allow inside", resp.Header.Get("Allow"), "GET")
	equal(t, "events", len(g.events.decisions()), 2)
}

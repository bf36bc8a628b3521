package proxy

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"egressd/event/eventtest"
	"egressd/policy"
	"egressd/proxy/internal/forward"
)

// endsSoon fails unless c ends within the second that a reload has.
func endsSoon(t *testing.T, what string, c net.Conn) {
	t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(time.Second))
	if _, err := io.Copy(io.Discard, c); err != nil && strings.Contains(err.Error(), "timeout") {
		t.Errorf("%s goes on after the reload", what)
	}
}

// TestReloadClosesEverything denies a host while each kind of connection to it
// is open, and keeps what goes to another.
func TestReloadClosesEverything(t *testing.T) {
	g := newGate(t, "a.example:22", "raw:a.example:99", "web.example", "b.example:22", "ws.example")
	g.name("a.example", 22, serveOrigin(t, echo))
	g.leads(public.String()+":99", serveOrigin(t, echo))
	g.name("b.example", 22, serveOrigin(t, echo))
	var origin sync.Map
	g.answer("web.example", mustAddr("93.184.216.35"))
	g.leads("93.184.216.35:80", serveOrigin(t, func(c net.Conn) {
		origin.Store("kept", c)
		httpOK(c)
		origin.Store("ended", c)
	}))
	g.answer("ws.example", mustAddr("93.184.216.36"))
	g.leads("93.184.216.36:80", serveOrigin(t, func(c net.Conn) {
		if _, err := headOf(c); err == nil {
			_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
			echo(c)
		}
	}))
	g.start()
	must := func(c net.Conn, err error) net.Conn {
		t.Helper()
		if err != nil || !pingPong(c) {
			t.Fatal(err)
		}
		return c
	}
	tunnel, raw := must(openConnect(g, "a.example", 22)), must(openConnect(g, "a.example", 99))
	captured, lives := must(openCaptured(g, "a.example", 22)), must(openSocks5(g, "b.example", 22))
	host, err := openConnect(g, "web.example", 80)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(host, "GET / HTTP/1.1\r\nHost: web.example\r\n\r\n")
	if head, err := headOf(host); err != nil || !strings.HasPrefix(head, "HTTP/1.1 200 ") {
		t.Fatal(head, err)
	}
	ws := dialGate(g, g.explicitAddr)
	_, _ = io.WriteString(ws, "GET http://ws.example/ HTTP/1.1\r\nHost: ws.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	if head, err := headOf(ws); err != nil || !strings.HasPrefix(head, "HTTP/1.1 101 ") {
		t.Fatal(head, err)
	}
	must(ws, nil)

	g.setPolicy("b.example:22")
	if n := g.Rejudge(); n != 5 {
		t.Errorf("%d flows closed, want 5", n)
	}
	for what, c := range map[string]net.Conn{"a tunnel": tunnel, "a raw tunnel": raw, "a captured tunnel": captured, "a kept-alive connection": host, "a WebSocket": ws} {
		endsSoon(t, what, c)
	}
	if !pingPong(lives) {
		t.Error("what is still allowed was closed")
	}
	settleUp(t, "kept connections closed", 1, func() int {
		if _, ok := origin.Load("ended"); ok {
			return 1
		}
		return 0
	})
	for i := 1; i <= 5; i++ { // one of them is the request, which ended well
		e := g.event("network.closed", i)
		if e.Host != "web.example" && !strings.Contains(e.Error, "denied by the policy now in force: host_not_listed") {
			t.Errorf("%+v", e)
		}
	}
}

// TestReloadWantsToSee loads a policy that allows the same hosts, but only under
// looks that an open tunnel has escaped.
func TestReloadWantsToSee(t *testing.T) {
	for _, tt := range []struct {
		before, after string
		port          uint16
		ends          bool
	}{
		{"raw:a.example:22", "a.example:22", 22, true},
		{"raw:a.example:80", "a.example:80", 80, true},
		{"raw:a.example:443", "a.example:443", 443, true},
		{"raw:a.example:443", "GET https://a.example/x", 443, true},
		{"raw:a.example:22", "raw:a.example:20-30", 22, false},
		{"a.example:22", "raw:a.example:22", 22, false},
		{"a.example:22", "*.example:22", 22, false},
	} {
		g := newGate(t, tt.before, "*.example:1")
		g.name("a.example", tt.port, serveOrigin(t, echo))
		g.start()
		c, err := openConnect(g, "a.example", tt.port)
		if err != nil || !pingPong(c) {
			t.Fatal(tt.before, err)
		}
		g.setPolicy(tt.after)
		g.Rejudge()
		if tt.ends {
			endsSoon(t, tt.before+" under "+tt.after, c)
		} else if !pingPong(c) {
			t.Errorf("%s under %s was closed", tt.before, tt.after)
		}
	}
}

// TestReloadBetweenLooks changes the policy when a flow has been judged and
// recorded and is not registered yet.
func TestReloadBetweenLooks(t *testing.T) {
	g := newGate(t, "raw:a.example:22")
	g.name("a.example", 22, serveOrigin(t, echo))
	var once sync.Once
	g.sink.hook = func(e eventtest.Line) {
		if e.Decision == "allowed" {
			once.Do(func() {
				g.setPolicy("b.example")
				g.Rejudge()
			})
		}
	}
	g.start()
	if c, err := openConnect(g, "a.example", 22); err == nil {
		endsSoon(t, "a flow that was judged under the old policy", c)
	}
	if e := g.event("network.closed", 1); !strings.Contains(e.Error, "denied by the policy now in force") {
		t.Errorf("%+v", e)
	}
}

// TestReloadIntercepted denies a host while a connection inside its opened TLS
// is idle, and another one waits for a response.
func TestReloadIntercepted(t *testing.T) {
	wait := make(chan struct{})
	g := tlsGate(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			<-wait
		}
	}, nil, "GET https://origin.test/**")
	defer close(wait)
	ask := func(path string) *rawConn {
		c, err := g.inside(t, "origin.test")
		if err != nil {
			t.Fatal(err)
		}
		c.send("GET " + path + " HTTP/1.1\r\nHost: origin.test\r\n\r\n")
		return c
	}
	idle := ask("/")
	if resp, _ := idle.response("GET"); resp.StatusCode != 200 {
		t.Fatal(resp.Status)
	}
	slow := ask("/slow")
	settleUp(t, "flows", 1, func() int { return g.s.Stats().Flows })
	g.s.Policy.Store(policyOf(t, "other.test"))
	g.s.Rejudge()
	endsSoon(t, "an idle connection inside TLS", idle.Conn)
	endsSoon(t, "a request inside TLS", slow.Conn)
}

// TestReloadTellsARequestUnderWay answers a request whose response has not begun
// in HTTP.
func TestReloadTellsARequestUnderWay(t *testing.T) {
	g := newGate(t, "web.example")
	g.name("web.example", 80, serveOrigin(t, silent))
	g.start()
	c := dialGate(g, g.explicitAddr)
	_, _ = io.WriteString(c, getWeb)
	g.event("network.connected", 1)
	g.setPolicy("b.example")
	g.Rejudge()
	if head, err := headOf(c); err != nil || !strings.HasPrefix(head, "HTTP/1.1 403 ") || !strings.Contains(head, "host_not_listed") {
		t.Errorf("%q, %v", head, err)
	}
}

// TestRetiredPoolKeepsNothing makes a request through the connections of a
// policy that is no longer in force: the one it used is not kept.
func TestRetiredPoolKeepsNothing(t *testing.T) {
	ended := make(chan struct{})
	origin := serveOrigin(t, func(c net.Conn) {
		httpOK(c)
		close(ended)
	})
	g := newGate(t, "web.example")
	up := g.pool.For(g.Policy.Load(), g.inForce, g.newForwarder)
	g.setPolicy("web.example:80")
	g.Rejudge()
	if g.pool.For(g.Policy.Load(), g.inForce, g.newForwarder) == up {
		t.Error("the pool outlives its policy")
	}
	req, err := http.NewRequest("GET", "http://web.example/", nil)
	if err != nil {
		t.Fatal(err)
	}
	got := up.Forward(t.Context(), forward.Exchange{
		Request: req, Writer: httptest.NewRecorder(), Host: "web.example:80", HostField: "web.example", Path: "/", Gate: dialOnly(origin),
	})
	if got.Failed != nil || got.Broken != nil || got.Received == 0 {
		t.Fatalf("%+v", got)
	}
	up.Done()
	select {
	case <-ended:
	case <-time.After(patience):
		t.Error("a connection of the old policy is kept")
	}
}

// dialOnly is a forward.Gate that lets everything pass to one origin.
type dialOnly string

func (o dialOnly) Dial(ctx context.Context) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "tcp", string(o))
}
func (dialOnly) Pass(net.Addr) error           { return nil }
func (dialOnly) Outgoing(*http.Request)        {}
func (dialOnly) Incoming(*http.Response) error { return nil }
func (dialOnly) Fields(http.Header)            {}
func (dialOnly) Count(int) error               { return nil }
func (dialOnly) Upgraded()                     {}
func (dialOnly) Survive(func())                {}

// TestThousandReloads looks for what each reload leaves behind.
func TestThousandReloads(t *testing.T) {
	g := newGate(t, "web.example")
	g.name("web.example", 80, serveOrigin(t, httpOK))
	g.start()
	policies := make([]*policy.Policy, 2)
	for i := range policies {
		g.setPolicy("web.example", "n"+itoa(uint16(i))+".example")
		policies[i] = g.Policy.Load()
	}
	c := dialGate(g, g.explicitAddr)
	br := bufio.NewReader(c)
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	request := func() {
		_, _ = io.WriteString(c, getWeb)
		resp, err := http.ReadResponse(br, nil)
		if err != nil || resp.StatusCode != 200 {
			t.Fatal(resp, err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
	}
	request()
	goroutines, fds := runtime.NumGoroutine(), openFiles(t)
	for i := range 1000 {
		g.Policy.Store(policies[i%2])
		g.Rejudge()
		request()
	}
	settle(t, "goroutines", goroutines+2, runtime.NumGoroutine)
	settle(t, "descriptors", fds+2, func() int { return openFiles(t) })
	if n := g.dials.Load(); n < 1000 {
		t.Errorf("%d dials: a connection outlived its policy", n)
	}
}

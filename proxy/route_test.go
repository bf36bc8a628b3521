package proxy

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"egressd/proxy/internal/wire"
)

const (
	tokenA = "tok-aaaaaaaa"
	tokenB = "tok-bbbbbbbb"
)

// manyGates is one listener in front of two tenants, each with a policy of its
// own. a allows a.example, b allows b.example; both names have origins with
// either.
type manyGates struct {
	front, a, b *testGate
	stopA       func()

	mu     sync.Mutex
	byAddr *Server // whom clients without credentials are judged by; nil: they must authenticate
}

func newManyGates(t *testing.T) *manyGates {
	t.Helper()
	m := &manyGates{front: newGate(t), a: newGate(t, "a.example", "a.example:22"), b: newGate(t, "b.example", "b.example:22")}
	m.front.Route = m.route
	raw, web := serveOrigin(t, echo), serveOrigin(t, httpOK)
	for _, g := range []*testGate{m.a, m.b} {
		for _, name := range []string{"a.example", "b.example"} {
			g.name(name, 22, raw)
			g.name(name, 80, web)
		}
	}
	m.stopA = m.a.run()
	m.b.run()
	m.front.start()
	return m
}

func (m *manyGates) route(c Client) *Server {
	switch {
	case c.HasToken && c.Token == tokenA:
		return m.a.Server
	case c.HasToken && c.Token == tokenB:
		return m.b.Server
	case c.HasToken:
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.byAddr
}

func (m *manyGates) setByAddr(s *Server) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.byAddr = s
}

// run runs the gate without a listener until the test ends, or the function it
// reports is called.
func (g *testGate) run() (stop func()) {
	g.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	started, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		g.Run(ctx, func() { close(started) })
	}()
	<-started
	stop = func() {
		cancel()
		select {
		case <-done:
		case <-time.After(patience):
			g.t.Error("Run does not return")
		}
	}
	g.t.Cleanup(stop)
	return stop
}

// noToken fails if a token is in any event of any gate.
func (m *manyGates) noToken(t *testing.T) {
	t.Helper()
	for _, g := range []*testGate{m.front, m.a, m.b} {
		g.sink.mu.Lock()
		text, err := json.Marshal(g.sink.events)
		g.sink.mu.Unlock()
		if err != nil {
			t.Fatal(err)
		}
		for _, secret := range []string{tokenA, tokenB, basic(tokenA, ""), basic(tokenB, ""), "tok-unknown"} {
			if strings.Contains(string(text), secret) {
				t.Errorf("the credentials %q are in the events", secret)
			}
		}
	}
}

func basic(user, password string) string {
	return base64.StdEncoding.EncodeToString([]byte(user + ":" + password))
}

// withToken are the doors that credentials can be sent to.
var withToken = []struct {
	door string
	open func(g *testGate, host, token string) error
}{
	{"connect", func(g *testGate, host, token string) error {
		c := dialGate(g, g.explicitAddr)
		fmt.Fprintf(c, "CONNECT %s:22 HTTP/1.1\r\nHost: %[1]s:22\r\n%s\r\n", host, authField(token))
		return pong(c, "HTTP/1.1 200")
	}},
	{"http", func(g *testGate, host, token string) error {
		c := dialGate(g, g.explicitAddr)
		fmt.Fprintf(c, "GET http://%s/ HTTP/1.1\r\nHost: %[1]s\r\n%s\r\n", host, authField(token))
		head, err := headOf(c)
		if err != nil {
			return err
		}
		if !strings.HasPrefix(head, "HTTP/1.1 200") {
			return refused{head}
		}
		return nil
	}},
	{"socks5", func(g *testGate, host, token string) error {
		c := dialGate(g, g.explicitAddr)
		greeting, want := "\x05\x01\x00", "\x05\x00"
		if token != "" { // as curl: both are offered
			greeting, want = "\x05\x02\x00\x02", "\x05\x02"
		}
		_, _ = io.WriteString(c, greeting)
		method := make([]byte, 2)
		if _, err := io.ReadFull(c, method); err != nil {
			return err
		}
		if string(method) != want {
			return refused{fmt.Sprintf("method %x", method)}
		}
		if token != "" {
			fmt.Fprintf(c, "\x01%c%s\x00", len(token), token)
			if _, err := io.ReadFull(c, method); err != nil {
				return err
			}
			if string(method) != "\x01\x00" {
				return refused{fmt.Sprintf("authentication %x", method)}
			}
		}
		fmt.Fprintf(c, "\x05\x01\x00\x03%c%s\x00\x16", len(host), host)
		return pong(c, "\x05\x00")
	}},
	{"socks4", func(g *testGate, host, token string) error {
		c := dialGate(g, g.explicitAddr)
		fmt.Fprintf(c, "\x04\x01\x00\x16\x00\x00\x00\x01%s\x00%s\x00", token, host)
		return pong(c, "\x00\x5a")
	}},
}

func authField(token string) string {
	if token == "" {
		return ""
	}
	return "Proxy-Authorization: Basic " + basic(token, "x") + "\r\n"
}

// pong reads the door's yes and sends bytes through the tunnel.
func pong(c net.Conn, yes string) error {
	got := make([]byte, len(yes))
	if _, err := io.ReadFull(c, got); err != nil {
		return err
	}
	if string(got) != yes {
		return refused{string(got)}
	}
	_, _ = io.WriteString(c, "ping!")
	var all []byte
	for buf := make([]byte, 64); !strings.HasSuffix(string(all), "ping!"); {
		n, err := c.Read(buf)
		all = append(all, buf[:n]...)
		if err != nil {
			return fmt.Errorf("the tunnel is shut: %w after %q", err, all)
		}
	}
	return nil
}

// TestRouteByCredentials sends the credentials of each tenant through each door.
func TestRouteByCredentials(t *testing.T) {
	for _, door := range withToken {
		t.Run(string(door.door), func(t *testing.T) {
			m := newManyGates(t)
			for _, tt := range []struct {
				token, host string
				judge       *testGate
				reason      string
			}{
				{tokenA, "a.example", m.a, "allowed"},
				{tokenA, "b.example", m.a, "host_not_listed"},
				{tokenB, "b.example", m.b, "allowed"},
				{tokenB, "a.example", m.b, "host_not_listed"},
				{"tok-unknown", "a.example", m.front, "not_authenticated"},
				{"", "a.example", m.front, "not_authenticated"},
			} {
				before := len(tt.judge.sink.all("network.connected"))
				err := door.open(m.front, tt.host, tt.token)
				if (err == nil) != (tt.reason == "allowed") {
					t.Errorf("%q to %s: %v", tt.token, tt.host, err)
				}
				if e := tt.judge.decision(before + 1); e.Reason != tt.reason || e.Door != door.door || tt.judge != m.front && e.Host != tt.host {
					t.Errorf("%q to %s: %+v, want %s", tt.token, tt.host, e, tt.reason)
				}
			}
			// Nobody else's events have anything of it.
			for g, want := range map[*testGate]int{m.front: 2, m.a: 2, m.b: 2} {
				if n := len(g.sink.all("network.connected")); n != want {
					t.Errorf("%d decisions in one sink, want %d: %+v", n, want, g.sink.all("network.connected"))
				}
			}
			m.noToken(t)
			// A known address is judged without credentials, but a token that is
			// not known never falls back to it.
			m.setByAddr(m.a.Server)
			if err := door.open(m.front, "a.example", ""); err != nil {
				t.Errorf("without credentials from a known address: %v", err)
			}
			if err := door.open(m.front, "a.example", "tok-unknown"); err == nil {
				t.Error("an unknown token fell back to the policy of the address")
			}
		})
	}
}

// TestNotAuthenticatedTeaches reads what a client without a token is told.
func TestNotAuthenticatedTeaches(t *testing.T) {
	m := newManyGates(t)
	for _, request := range []string{
		"CONNECT a.example:443 HTTP/1.1\r\n\r\n",
		"GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n",
		"GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\nProxy-Authorization: Bearer abc\r\n\r\n",
	} {
		c := dialGate(m.front, m.front.explicitAddr)
		_, _ = io.WriteString(c, request)
		answer, _ := io.ReadAll(c)
		for _, want := range []string{"HTTP/1.1 407 ", "Proxy-Authenticate: Basic realm=\"egressd\"", "X-Egressd-Reason: not_authenticated", "http://TOKEN@host:port"} {
			if !strings.Contains(string(answer), want) {
				t.Errorf("%q is not in %q", want, answer)
			}
		}
	}
}

// TestMalformedCredentials sends what cannot be read as Basic credentials.
func TestMalformedCredentials(t *testing.T) {
	m := newManyGates(t)
	m.setByAddr(m.a.Server) // which nobody must fall back to
	fields := []string{
		"Basic", "Basic ", "Basic !!!", "Basic " + strings.TrimRight(basic("a", ""), "=") + "=====", "basic " + base64.StdEncoding.EncodeToString([]byte("nocolon")),
		"Basic " + basic("", "password"), "Basic " + basic(strings.Repeat("a", wire.MaxToken+1), ""), "Basic " + basic("a\x00b", ""),
		"Basic " + basic(tokenA, "") + " " + basic(tokenB, ""), "Basic YR==",
		"Basic " + basic(tokenA, "") + "\r\nProxy-Authorization: Basic " + basic(tokenA, ""),
	}
	n := 0
	for _, field := range fields {
		for _, request := range []string{
			"CONNECT a.example:22 HTTP/1.1\r\nProxy-Authorization: %s\r\n\r\n",
			"GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\nProxy-Authorization: %s\r\n\r\n",
		} {
			c := dialGate(m.front, m.front.explicitAddr)
			fmt.Fprintf(c, request, field)
			if head, _ := headOf(c); !strings.HasPrefix(head, "HTTP/1.1 400 ") {
				t.Errorf("%q: %q", field, head)
			}
			n++
			if e := m.front.decision(n); e.Reason != "http_request_error" || e.Decision != "blocked" {
				t.Errorf("%q: %+v", field, e)
			}
		}
	}
	// RFC 1929 wants a user name.
	c := dialGate(m.front, m.front.explicitAddr)
	_, _ = io.WriteString(c, "\x05\x01\x02\x01\x00\x00")
	if answer, _ := io.ReadAll(c); string(answer) != "\x05\x02\x01\x01" {
		t.Errorf("empty SOCKS5 user name: %x", answer)
	}
	if e := m.front.decision(n + 1); e.Reason != "http_request_error" {
		t.Errorf("%+v", e)
	}
	m.noToken(t)
}

// TestKeptAliveCredentials changes who asks on one connection.
func TestKeptAliveCredentials(t *testing.T) {
	m := newManyGates(t)
	type step struct{ token, status string }
	for name, steps := range map[string][]step{
		"asked for credentials": {{"", "407"}, {"tok-unknown", "407"}, {tokenA, "200"}, {tokenA, "200"}},
		"another token":         {{tokenA, "200"}, {tokenB, "407"}},
		"no token":              {{tokenA, "200"}, {"", "407"}},
		"unknown token":         {{tokenA, "200"}, {"tok-unknown", "407"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := dialGate(m.front, m.front.explicitAddr)
			for i, st := range steps {
				fmt.Fprintf(c, "GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n%s\r\n", authField(st.token))
				head, err := headOf(c)
				if err != nil || !strings.HasPrefix(head, "HTTP/1.1 "+st.status) {
					t.Fatalf("request %d: %q, %v", i, head, err)
				}
				n, _ := contentLengthOf(head)
				if _, err := io.CopyN(io.Discard, c, n); err != nil {
					t.Fatal(err)
				}
			}
			if last := steps[len(steps)-1]; last.status == "407" {
				if rest, err := io.ReadAll(c); err != nil || len(rest) > 0 {
					t.Errorf("the connection goes on in two names: %q, %v", rest, err)
				}
			}
		})
	}
	// CONNECT in the end, in another name.
	c := dialGate(m.front, m.front.explicitAddr)
	fmt.Fprintf(c, "GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n%s\r\nCONNECT b.example:22 HTTP/1.1\r\n%s\r\n", authField(tokenA), authField(tokenB))
	all, _ := io.ReadAll(c)
	if !strings.HasPrefix(string(all), "HTTP/1.1 200 ") || !strings.Contains(string(all), "HTTP/1.1 407 ") {
		t.Errorf("%q", all)
	}
	m.noToken(t)
}

func contentLengthOf(head string) (int64, bool) {
	var n int64
	for line := range strings.SplitSeq(head, "\r\n") {
		if _, err := fmt.Sscanf(line, "Content-Length: %d", &n); err == nil {
			return n, true
		}
	}
	return 0, false
}

// TestCredentialsStayHere looks at what the origin of an absolute-form request
// sees.
func TestCredentialsStayHere(t *testing.T) {
	m := newManyGates(t)
	heads := make(chan string, 2)
	m.a.name("a.example", 80, serveOrigin(t, func(c net.Conn) {
		head, _ := headOf(c)
		heads <- head
		_, _ = io.WriteString(c, "HTTP/1.1 204 No Content\r\n\r\n")
	}))
	for _, more := range []string{"", "Connection: Upgrade\r\nUpgrade: websocket\r\n"} {
		c := dialGate(m.front, m.front.explicitAddr)
		fmt.Fprintf(c, "GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n%s%s\r\n", more, authField(tokenA))
		if head := <-heads; strings.Contains(head, "uthori") || strings.Contains(head, basic(tokenA, "x")) {
			t.Errorf("the origin saw %q", head)
		}
	}
}

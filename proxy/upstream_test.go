package proxy

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"egressd/policy"
	"egressd/policy/upstream"
	"egressd/proxy/ca"
)

// companyProxy is an upstream proxy as companies have them.
type companyProxy struct {
	answer string // to every request, in place of what was asked for; "": the tunnel, or an ok
	origin string // where tunnels lead
	banner string // sent with the head of the answer: an origin that speaks first

	mu  sync.Mutex
	got []string // the request lines, each with its Proxy-Authorization if there was one
}

func (p *companyProxy) serve(c net.Conn) {
	br := bufio.NewReader(c)
	for {
		r, err := http.ReadRequest(br)
		if err != nil {
			return
		}
		line := r.Method + " " + r.RequestURI
		if login := r.Header.Get("Proxy-Authorization"); login != "" {
			line += " " + login
		}
		p.mu.Lock()
		p.got = append(p.got, line)
		p.mu.Unlock()
		switch {
		case p.answer != "":
			_, _ = io.WriteString(c, p.answer)
			return
		case r.Method != http.MethodConnect:
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n")
			continue
		}
		_, _ = io.WriteString(c, established+p.banner)
		if p.origin == "" {
			echo(c)
			return
		}
		up, err := net.Dial("tcp", p.origin)
		if err != nil {
			return
		}
		defer up.Close()
		go func() {
			_, _ = io.Copy(up, br)
			_ = up.Close()
		}()
		_, _ = io.Copy(c, up)
		return
	}
}

func (p *companyProxy) lines() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.got)
}

// proxyAddr is where the company's proxy is, as the gate sees it.
const proxyAddr = "10.9.9.9:3128"

// behind is a gate whose flows leave through p. Origins are reached by nothing else:
// a flow that goes directly fails, and is counted.
func behind(t *testing.T, p *companyProxy, s upstream.Section, rules ...string) *testGate {
	t.Helper()
	g := newGate(t, rules...)
	if s.URL == "" {
		s.URL = "http://proxy.corp.example:3128"
	}
	g.store(&policy.Document{Upstream: s}, rules...)
	g.answer("proxy.corp.example", mustAddr("10.9.9.9"))
	g.leads(proxyAddr, serveOrigin(t, p.serve))
	return g.start()
}

// TestUpstreamAddress takes every door through the upstream proxy, which is asked for
// the judged address.
func TestUpstreamAddress(t *testing.T) {
	for _, door := range clients() {
		t.Run(door.name, func(t *testing.T) {
			p := &companyProxy{}
			g := behind(t, p, upstream.Section{}, "a.example:22")
			g.answer("a.example", public)
			c, err := door.open(g, "a.example", 22)
			if err != nil {
				t.Fatal(err)
			}
			if got := ping(t, c); got != "ping" {
				t.Errorf("got %q", got)
			}
			if got := p.lines(); !slices.Equal(got, []string{"CONNECT 93.184.216.34:22"}) {
				t.Errorf("the proxy was asked %q", got)
			}
			d := g.decision(1)
			if d.Decision != "allowed" || d.Via != "proxy.corp.example:3128" || d.Addr != "93.184.216.34:22" {
				t.Errorf("%+v", d)
			}
		})
	}
}

// ping sends a word and reports the echo.
func ping(t *testing.T, c net.Conn) string {
	t.Helper()
	if _, err := io.WriteString(c, "ping"); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 4)
	if _, err := io.ReadFull(c, buf); err != nil {
		t.Fatal(err)
	}
	return string(buf)
}

// TestUpstreamName has the upstream proxy look names up. What this machine can look up
// is judged all the same.
func TestUpstreamName(t *testing.T) {
	p := &companyProxy{}
	g := behind(t, p, upstream.Section{Resolve: "proxy"}, "a.example:22", "inside.example:22", "pinned.example:22", "203.0.113.7:22")
	doc := &policy.Document{
		Upstream: upstream.Section{URL: "http://proxy.corp.example:3128", Resolve: "proxy"},
		Hosts:    []policy.Entry{{Text: "pinned.example=203.0.113.9"}},
	}
	g.store(doc, "a.example:22", "inside.example:22", "pinned.example:22", "203.0.113.7:22")
	g.answer("inside.example", mustAddr("10.0.0.1"))
	for _, tt := range []struct{ host, asked string }{
		{"a.example", "CONNECT a.example:22"}, // which this machine cannot look up
		{"pinned.example", "CONNECT 203.0.113.9:22"},
		{"203.0.113.7", "CONNECT 203.0.113.7:22"},
	} {
		c, err := openConnect(g, tt.host, 22)
		if err != nil {
			t.Fatal(tt.host, err)
		}
		ping(t, c)
		if got := p.lines(); got[len(got)-1] != tt.asked {
			t.Errorf("the proxy was asked %q, want %q", got, tt.asked)
		}
	}
	if _, err := openConnect(g, "inside.example", 22); err == nil || !strings.Contains(err.Error(), "403") {
		t.Errorf("a private address passed: %v", err)
	}
	if d := g.decision(4); d.Reason != "destination_ip_prohibited" {
		t.Errorf("%+v", d)
	}
	if d := g.decision(1); d.Addr != "" || d.Via == "" {
		t.Errorf("%+v", d)
	}
}

// TestUpstreamPlainHTTP sends requests in absolute form where names are looked up at the
// proxy, and by CONNECT where they are looked up here.
func TestUpstreamPlainHTTP(t *testing.T) {
	for resolve, want := range map[string][]string{
		"proxy": {"GET http://web.example/x?y=1 Basic am9lOnB3", "GET http://web.example//z Basic am9lOnB3"},
		"local": {"CONNECT 93.184.216.34:80 Basic am9lOnB3"},
	} {
		t.Run(resolve, func(t *testing.T) {
			p := &companyProxy{origin: serveOrigin(t, httpOK)}
			g := behind(t, p, upstream.Section{Resolve: resolve}, "web.example")
			g.Upstream = func(*upstream.Proxy) (UpstreamAccess, error) { return UpstreamAccess{Login: "joe:pw"}, nil }
			g.answer("web.example", public)
			c := dialGate(g, g.explicitAddr)
			br := bufio.NewReader(c)
			for _, path := range []string{"/x?y=1", "//z"} {
				fmt.Fprintf(c, "GET http://web.example%s HTTP/1.1\r\nHost: web.example\r\nProxy-Authorization: Basic bWluZQ==\r\n\r\n", path)
				resp, err := http.ReadResponse(br, nil)
				if err != nil || resp.StatusCode != 200 {
					t.Fatal(resp, err)
				}
				_, _ = io.Copy(io.Discard, resp.Body)
			}
			if got := p.lines(); !slices.Equal(got, want) {
				t.Errorf("the proxy was asked %q", got)
			}
			if d := g.decision(1); d.Via != "proxy.corp.example:3128" || (d.Addr == "") != (resolve == "proxy") {
				t.Errorf("%+v", d)
			}
		})
	}
}

// TestUpstreamRefuses has the proxy say no in every way: the event and the client's
// answer say what it was, and no secret is in either.
func TestUpstreamRefuses(t *testing.T) {
	for _, tt := range []struct{ answer, login, reason, detail string }{
		{"HTTP/1.1 403 Nope \x1b[31m\r\n\r\n", "", "upstream_proxy_refused", "the upstream proxy answered 403 Forbidden"},
		{"HTTP/1.1 407 X\r\nProxy-Authenticate: Basic realm=\"corp\"\r\n\r\n", "", "upstream_proxy_login", "the upstream proxy wants a login"},
		{"HTTP/1.1 407 X\r\nProxy-Authenticate: Basic realm=\"corp\"\r\n\r\n", "joe:hunter2", "upstream_proxy_login", "the upstream proxy does not take this login"},
		{"HTTP/1.1 407 X\r\nProxy-Authenticate: Negotiate\r\nProxy-Authenticate: NTLM\r\n\r\n", "joe:hunter2", "upstream_proxy_login", "the upstream proxy wants a login that the gate does not speak (Negotiate, NTLM): run a helper that does, such as cntlm or px, and name that as the upstream proxy"},
		{"HTTP/1.1 401 X\r\n\r\n", "joe:hunter2", "upstream_proxy_login", "the upstream proxy does not take this login"}, // tinyproxy's
		{"HTTP/1.1 502 X\r\n\r\n", "", "destination_unavailable", "the upstream proxy answered 502 Bad Gateway"},
		{"HTTP/1.1 504 X\r\n\r\n", "", "connection_timeout", "the upstream proxy answered 504 Gateway Timeout"},
		{"SSH-2.0-OpenSSH\r\n\r\n", "", "upstream_proxy_failed", "the upstream proxy answered something that is not HTTP, or too much of it"},
		{"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 20<<10), "", "upstream_proxy_failed", "the upstream proxy answered something that is not HTTP, or too much of it"},
		{"HTTP/1.1 200", "", "upstream_proxy_failed", "the upstream proxy closed the connection without an answer"},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			p := &companyProxy{answer: tt.answer}
			g := behind(t, p, upstream.Section{}, "a.example:22")
			g.Upstream = func(*upstream.Proxy) (UpstreamAccess, error) { return UpstreamAccess{Login: tt.login}, nil }
			g.answer("a.example", public)
			_, err := openConnect(g, "a.example", 22)
			if err == nil || !strings.Contains(err.Error(), " 50") {
				t.Errorf("the client was told %v", err)
			}
			d := g.decision(1)
			if d.Reason != tt.reason || d.Error != tt.detail || d.Via == "" || d.Decision != "blocked" {
				t.Errorf("%+v", d)
			}
			if strings.Contains(fmt.Sprintf("%+v %v", d, err), "hunter2") {
				t.Error("the password is in the event or the answer")
			}
		})
	}
}

// TestUpstreamLoginIsNotThePrograms keeps a 407 of the proxy from the program.
func TestUpstreamLoginIsNotThePrograms(t *testing.T) {
	p := &companyProxy{answer: "HTTP/1.1 407 Login\r\nProxy-Authenticate: Basic realm=\"corp\"\r\nContent-Length: 0\r\n\r\n"}
	g := behind(t, p, upstream.Section{Resolve: "proxy"}, "web.example")
	c := dialGate(g, g.explicitAddr)
	fmt.Fprint(c, "GET http://web.example/ HTTP/1.1\r\nHost: web.example\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil || resp.StatusCode != 502 || resp.Header.Get("Proxy-Authenticate") != "" || resp.Header.Get("X-Egressd-Reason") != "upstream_proxy_login" {
		t.Errorf("%+v %v", resp, err)
	}
}

// TestNothingGoesDirectly is the attack: the upstream proxy is down, or looks names up
// that this machine could look up itself, and programs try every door. Nothing but the
// proxy and what is bypassed is dialled.
func TestNothingGoesDirectly(t *testing.T) {
	g := behind(t, &companyProxy{}, upstream.Section{Bypass: []string{".direct.example"}}, "a.example:22", "a.example", "203.0.113.7:22", "git.direct.example:22")
	g.leads(proxyAddr, "127.0.0.1:1") // it is down
	for _, at := range []string{"93.184.216.34:22", "93.184.216.34:80", "203.0.113.7:22"} {
		g.leads(at, serveOrigin(t, echo))
	}
	g.answer("a.example", public)
	var dialled sync.Map
	inner := g.dialFunc
	g.dialFunc = recordDials(&dialled, inner)
	for _, door := range clients() {
		for _, host := range []string{"a.example", "203.0.113.7"} {
			if c, err := door.open(g, host, 22); err == nil {
				_, _ = io.WriteString(c, "x")
				if n, _ := c.Read(make([]byte, 1)); n > 0 {
					t.Errorf("%s reached %s", door.name, host)
				}
			}
		}
	}
	c := dialGate(g, g.explicitAddr)
	fmt.Fprint(c, "GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n")
	if resp, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil || resp.StatusCode != 502 {
		t.Errorf("%+v %v", resp, err)
	}
	dialled.Range(func(at, _ any) bool {
		if at != proxyAddr {
			t.Errorf("%s was dialled", at)
		}
		return true
	})
	g.answer("git.direct.example", public)
	if c, err := openConnect(g, "git.direct.example", 22); err != nil || ping(t, c) != "ping" {
		t.Errorf("what is bypassed does not go directly: %v", err)
	}
}

// TestUpstreamIsNoDestination asks the gate for the company's proxy, by its name, by a
// name that leads there and by its address, which rules cover; and names the gate as
// its own upstream.
func TestUpstreamIsNoDestination(t *testing.T) {
	for _, bypass := range [][]string{nil, {".corp.example", "10.0.0.0/8"}} {
		p := &companyProxy{}
		g := behind(t, p, upstream.Section{Bypass: bypass}, ".corp.example:*", "10.0.0.0/8:*")
		g.answer("alias.corp.example", mustAddr("10.9.9.9"))
		for i, host := range []string{"proxy.corp.example", "alias.corp.example", "10.9.9.9"} {
			if _, err := openConnect(g, host, 3128); err == nil {
				t.Errorf("%s can be reached", host)
			}
			if d := g.decision(i + 1); d.Reason != "proxy_loop_detected" {
				t.Errorf("%+v", d)
			}
		}
		if got := p.lines(); len(got) > 0 {
			t.Errorf("the proxy was asked %q", got)
		}
	}
	g := behind(t, &companyProxy{}, upstream.Section{}, "a.example:22")
	g.store(&policy.Document{Upstream: upstream.Section{URL: "http://" + g.explicitAddr}}, "a.example:22")
	g.answer("a.example", public)
	_, err := openConnect(g, "a.example", 22)
	if d := g.decision(1); err == nil || d.Reason != "proxy_loop_detected" || g.dials.Load() != 0 {
		t.Errorf("%+v %v", d, err)
	}
}

// TestUpstreamTLS verifies an https:// proxy, before the login is sent.
func TestUpstreamTLS(t *testing.T) {
	p := &companyProxy{}
	authority, err := ca.New([]string{"proxy.corp.example"})
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := authority.Leaf("proxy.corp.example")
	if err != nil {
		t.Fatal(err)
	}
	roots := poolOf(t, authority.PEM())
	for _, tt := range []struct {
		name  string
		roots *x509.CertPool
	}{{"proxy.corp.example", roots}, {"proxy.corp.example", nil}, {"other.corp.example", roots}} {
		g := behind(t, p, upstream.Section{URL: "https://" + tt.name + ":3128"}, "a.example:22")
		g.answer(tt.name, mustAddr("10.9.9.9"))
		g.leads(proxyAddr, serveOrigin(t, func(c net.Conn) {
			p.serve(tls.Server(c, &tls.Config{Certificates: []tls.Certificate{*leaf}}))
		}))
		g.Upstream = func(*upstream.Proxy) (UpstreamAccess, error) {
			return UpstreamAccess{Login: "joe:pw", Roots: tt.roots}, nil
		}
		g.answer("a.example", public)
		before := len(p.lines())
		c, err := openConnect(g, "a.example", 22)
		if tt.roots != nil && tt.name == "proxy.corp.example" {
			if err != nil || ping(t, c) != "ping" {
				t.Error(err)
			}
			continue
		}
		d := g.decision(1)
		if err == nil || d.Reason != "upstream_proxy_failed" || !strings.Contains(d.Error, "certificate") || len(p.lines()) != before {
			t.Errorf("%+v %v", d, err)
		}
	}
}

// TestUpstreamSpeaksFirst keeps what an origin says in the same packet as the proxy's
// answer.
func TestUpstreamSpeaksFirst(t *testing.T) {
	g := behind(t, &companyProxy{banner: "SSH-2.0-x\r\n"}, upstream.Section{}, "a.example:22")
	g.answer("a.example", public)
	c, err := openConnect(g, "a.example", 22)
	if err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(c).ReadString('\n'); line != "SSH-2.0-x\r\n" {
		t.Errorf("%q %v", line, err)
	}
}

// TestUpstreamAccess says what is wrong with the login's file, and dials nothing.
func TestUpstreamAccess(t *testing.T) {
	g := behind(t, &companyProxy{}, upstream.Section{Credentials: "/login"}, "a.example:22")
	g.Upstream = func(u *upstream.Proxy) (UpstreamAccess, error) {
		return UpstreamAccess{}, errors.New(u.Credentials + " cannot be read")
	}
	g.answer("a.example", public)
	_, err := openConnect(g, "a.example", 22)
	if d := g.decision(1); err == nil || d.Reason != "upstream_proxy_failed" || d.Error != "/login cannot be read" || g.dials.Load() != 0 {
		t.Errorf("%+v %v", d, err)
	}
}

// TestUpstreamLoopback dials this machine's own addresses and does not ask the proxy for
// its.
func TestUpstreamLoopback(t *testing.T) {
	for _, resolve := range []string{"local", "proxy"} {
		p := &companyProxy{}
		g := behind(t, p, upstream.Section{Resolve: resolve}, "127.0.0.1:5432")
		g.leads("127.0.0.1:5432", serveOrigin(t, echo))
		c, err := openConnect(g, "127.0.0.1", 5432)
		if err != nil || ping(t, c) != "ping" || len(p.lines()) > 0 {
			t.Errorf("%v, the proxy was asked %q", err, p.lines())
		}
	}
}

// TestUpstreamOpensTLS opens TLS of an origin behind the upstream proxy, and verifies it.
func TestUpstreamOpensTLS(t *testing.T) {
	authority, err := ca.New([]string{"origin.test"})
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := authority.Leaf("origin.test")
	if err != nil {
		t.Fatal(err)
	}
	p := &companyProxy{origin: serveOrigin(t, func(c net.Conn) {
		httpOK(tls.Server(c, &tls.Config{Certificates: []tls.Certificate{*leaf}}))
	})}
	for _, verifies := range []bool{true, false} {
		g := behind(t, p, upstream.Section{Resolve: "proxy"}, "GET https://origin.test/**")
		g.CA, g.RootCAs = authority, x509.NewCertPool()
		if verifies {
			g.RootCAs = poolOf(t, authority.PEM())
		}
		c, err := openConnect(g, "origin.test", 443)
		if err != nil {
			t.Fatal(err)
		}
		inside := tls.Client(c, &tls.Config{ServerName: "origin.test", RootCAs: poolOf(t, authority.PEM())})
		fmt.Fprint(inside, "GET /x HTTP/1.1\r\nHost: origin.test\r\n\r\n")
		resp, err := http.ReadResponse(bufio.NewReader(inside), nil)
		if err != nil || (resp.StatusCode == 200) != verifies {
			t.Errorf("%+v %v", resp, err)
		}
		if got := p.lines(); got[len(got)-1] != "CONNECT origin.test:443" {
			t.Errorf("the proxy was asked %q", got)
		}
	}
}

// recordDials is dial, and notes where to.
func recordDials(to *sync.Map, dial func(context.Context, *net.Dialer, string, string) (net.Conn, error)) func(context.Context, *net.Dialer, string, string) (net.Conn, error) {
	return func(ctx context.Context, d *net.Dialer, network, address string) (net.Conn, error) {
		to.Store(address, true)
		return dial(ctx, d, network, address)
	}
}

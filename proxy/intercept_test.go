package proxy

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"egressd/event"
	"egressd/internal/ca"
	"egressd/policy"
)

// secretWorth is what must never be seen inside or in an event.
const secretWorth = "sk-real-value"

// tlsGate is a webGate in front of an https origin whose certificate names
// origin.test and other.test.
func tlsGate(t *testing.T, h http.HandlerFunc, secrets []policy.Secret, allow ...string) *webGate {
	t.Helper()
	origins, err := ca.New([]string{"origin.test", "other.test"})
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := origins.Leaf("origin.test")
	if err != nil {
		t.Fatal(err)
	}
	o := httptest.NewUnstartedServer(h)
	o.TLS = &tls.Config{Certificates: []tls.Certificate{*leaf}}
	o.Config.ErrorLog = (&Server{}).debugLog()
	o.StartTLS()
	t.Cleanup(o.Close)

	g := newWebGate(t, o.Listener.Addr().String(), "origin.test")
	doc := &policy.Document{Secrets: secrets}
	for i, text := range allow {
		doc.Allow = append(doc.Allow, policy.Entry{Text: text, Pos: policy.Pos{File: "--allow", Line: i + 1}})
	}
	for _, name := range []string{"origin.test", "other.test"} {
		doc.Hosts = append(doc.Hosts, policy.Entry{Text: name + "=127.0.0.1"})
	}
	p, err := policy.Compile(doc)
	if err != nil {
		t.Fatal(err)
	}
	g.s.Policy.Store(p)
	if g.s.CA, err = ca.New([]string{"origin.test", "other.test"}); err != nil {
		t.Fatal(err)
	}
	g.s.RootCAs = poolOf(t, origins.PEM())
	g.s.SecretValue = func(env string) (string, string, bool) { return "placeholder-" + env, secretWorth, env == "TOKEN" }
	return g
}

func poolOf(t *testing.T, pem []byte) *x509.CertPool {
	t.Helper()
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		t.Fatal("no certificate")
	}
	return pool
}

// httpsClient trusts the session CA alone.
func (g *webGate) httpsClient(t *testing.T) *http.Client {
	tr := &http.Transport{
		Proxy:              http.ProxyURL(&url.URL{Scheme: "http", Host: g.addr}),
		TLSClientConfig:    &tls.Config{RootCAs: poolOf(t, g.s.CA.PEM())},
		ForceAttemptHTTP2:  true,
		DisableCompression: true,
	}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: 2 * patience}
}

// inside opens a TLS connection to origin.test through CONNECT.
func (g *webGate) inside(t *testing.T, sni string) (*rawConn, error) {
	c := g.dial()
	c.send("CONNECT origin.test:443 HTTP/1.1\r\nHost: origin.test:443\r\n\r\n")
	resp, err := http.ReadResponse(c.r, &http.Request{Method: "CONNECT"})
	if err != nil || resp.StatusCode != 200 {
		t.Fatalf("CONNECT: %v, %v", resp, err)
	}
	tc := tls.Client(c.Conn, &tls.Config{ServerName: sni, RootCAs: poolOf(t, g.s.CA.PEM()), NextProtos: []string{"h2", "http/1.1"}})
	if err := tc.Handshake(); err != nil {
		return nil, err
	}
	return wrapRaw(t, tc), nil
}

func TestInterceptJudgesEachRequest(t *testing.T) {
	g := tlsGate(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.Host, " ", r.RequestURI, " ", r.TLS.ServerName)
	}, nil, "GET https://origin.test/v1/**")
	c := g.httpsClient(t)
	for _, tt := range []struct {
		method, path string
		status       int
		reason       string
	}{
		{"GET", "/v1/a%2Fb?q=1", 200, ""},
		{"GET", "/v1", 200, ""},
		{"POST", "/v1/x", 403, "method_not_listed"},
		{"GET", "/v2/x", 403, "path_not_listed"},
		{"GET", "/v1/../v2", 400, "http_request_error"},
	} {
		req, err := http.NewRequest(tt.method, "https://origin.test"+tt.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		equal(t, tt.path, resp.StatusCode, tt.status)
		equal(t, tt.path, resp.Header.Get("X-Egressd-Reason"), tt.reason)
		equal(t, "protocol", resp.Proto, "HTTP/1.1")
		if tt.status == 200 {
			equal(t, "at the origin", string(b), "origin.test "+tt.path+" origin.test")
		}
	}
	for _, e := range g.events.find(event.NetworkConnected) {
		if e.Door != event.DoorIntercept || e.Host != "origin.test" || e.Port != 443 || strings.Contains(e.Path, "?") {
			t.Errorf("event %+v", e)
		}
	}
	wantEvents(t, g.events,
		"allowed GET origin.test:443 /v1/a%2Fb allowed",
		"allowed GET origin.test:443 /v1 allowed",
		"blocked POST origin.test:443 /v1/x method_not_listed",
		"blocked GET origin.test:443 /v2/x path_not_listed",
		"blocked GET origin.test:443 /v1/../v2 http_request_error")
	equal(t, "dials: the connection is kept", g.dials.Load(), 1)
}

// A client that does not take the gate's certificate, or insists on h2, leaves
// an event that says so.
func TestInterceptRecordsFailedHandshakes(t *testing.T) {
	for _, tt := range []struct {
		name, detail string
		conf         *tls.Config
	}{
		{"untrusted", "certificate authority", &tls.Config{ServerName: "origin.test"}},
		{"h2 alone", "application protocol", &tls.Config{ServerName: "origin.test", InsecureSkipVerify: true, NextProtos: []string{"h2"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := tlsGate(t, func(http.ResponseWriter, *http.Request) {}, nil, "GET https://origin.test/**")
			c := g.dial()
			c.send("CONNECT origin.test:443 HTTP/1.1\r\n\r\n")
			if head := rawHead(t, c.r); !strings.HasPrefix(head, "HTTP/1.1 200 ") {
				t.Fatal(head)
			}
			if err := tls.Client(c, tt.conf).Handshake(); err == nil {
				t.Error("the handshake succeeded")
			}
			_ = c.Close()
			if !settles(func() bool { return len(g.events.find(event.NetworkConnected)) > 0 }) {
				t.Fatal("no event")
			}
			wantEvents(t, g.events, "blocked  origin.test:443  intercept_off")
			if e := g.events.find(event.NetworkConnected)[0]; e.Door != event.DoorIntercept || !strings.Contains(e.Error, tt.detail) {
				t.Errorf("%+v", e)
			}
		})
	}
}

func TestInterceptHoldsTheAuthority(t *testing.T) {
	g := tlsGate(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "in") }, nil,
		"GET https://origin.test/**", "GET https://other.test/**")
	c, err := g.inside(t, "origin.test")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		target, host string
		status       int
	}{
		{"/", "origin.test", 200},
		{"/", "ORIGIN.test:443", 200},
		{"https://origin.test/", "origin.test", 200},
		{"/", "other.test", 403},
		{"/", "origin.test:80", 403},
		{"https://other.test/", "origin.test", 403},
		{"https://other.test/", "other.test", 403},
		{"/", "127.0.0.1", 403},
		{"http://origin.test/", "origin.test", 400}, // and ends the connection
	} {
		c.send("GET " + tt.target + " HTTP/1.1\r\nHost: " + tt.host + "\r\n\r\n")
		resp, _ := c.response("GET")
		equal(t, tt.target+" Host "+tt.host, resp.StatusCode, tt.status)
	}
	for _, sni := range []string{"other.test", ""} {
		if _, err := g.insideSkip(t, sni); err == nil {
			t.Errorf("SNI %q was served inside a CONNECT to origin.test", sni)
		}
	}
}

// insideSkip is inside for a client that verifies nothing.
func (g *webGate) insideSkip(t *testing.T, sni string) (*tls.Conn, error) {
	c := g.dial()
	c.send("CONNECT origin.test:443 HTTP/1.1\r\nHost: origin.test:443\r\n\r\n")
	if resp, err := http.ReadResponse(c.r, &http.Request{Method: "CONNECT"}); err != nil || resp.StatusCode != 200 {
		t.Fatalf("CONNECT: %v, %v", resp, err)
	}
	tc := tls.Client(c.Conn, &tls.Config{ServerName: sni, InsecureSkipVerify: true}) // the test is about the SNI alone
	return tc, tc.Handshake()
}

func TestInterceptConnectInside(t *testing.T) {
	g := tlsGate(t, func(w http.ResponseWriter, r *http.Request) {}, nil, "GET https://origin.test/**", "other.test")
	c, err := g.inside(t, "origin.test")
	if err != nil {
		t.Fatal(err)
	}
	c.send("CONNECT other.test:443 HTTP/1.1\r\nHost: other.test:443\r\n\r\n")
	resp, _ := c.response("GET")
	equal(t, "status", resp.StatusCode, 400)
	equal(t, "dials", g.dials.Load(), 0)
}

func TestInterceptUpgradeAndStream(t *testing.T) {
	ack := make(chan struct{})
	g := tlsGate(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "" {
			c, rw, err := http.NewResponseController(w).Hijack()
			if err != nil {
				return
			}
			defer c.Close()
			_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
			_, _ = io.Copy(c, rw)
			return
		}
		for i := range 3 {
			fmt.Fprintf(w, "data: %d\n", i)
			_ = http.NewResponseController(w).Flush()
			<-ack
		}
	}, nil, "GET https://origin.test/**")
	c, err := g.inside(t, "origin.test")
	if err != nil {
		t.Fatal(err)
	}
	c.send("GET /stream HTTP/1.1\r\nHost: origin.test\r\n\r\n")
	resp, err := http.ReadResponse(c.r, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		line := make([]byte, 8)
		if _, err := io.ReadFull(resp.Body, line); err != nil || string(line) != fmt.Sprintf("data: %d\n", i) {
			t.Fatalf("%q, %v", line, err)
		}
		ack <- struct{}{}
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	c.send("GET /ws HTTP/1.1\r\nHost: origin.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	if h := rawHead(t, c.r); !strings.HasPrefix(h, "HTTP/1.1 101 ") {
		t.Fatalf("got %q", h)
	}
	c.send("ping")
	echo := make([]byte, 4)
	if _, err := io.ReadFull(c.r, echo); err != nil || string(echo) != "ping" {
		t.Errorf("%q, %v", echo, err)
	}
}

func TestInterceptVerifiesTheOrigin(t *testing.T) {
	g := tlsGate(t, func(w http.ResponseWriter, r *http.Request) { t.Error("reached") }, nil, "GET https://origin.test/**")
	g.s.RootCAs = x509.NewCertPool() // trusts nobody
	resp, body := fetch(t, g.httpsClient(t), "https://origin.test/")
	equal(t, "status", resp.StatusCode, 502)
	equal(t, "reason", resp.Header.Get("X-Egressd-Reason"), "tls_certificate_error")
	if !strings.Contains(body, "certificate") || !strings.Contains(resp.Header.Get("Proxy-Status"), "error=tls_certificate_error") {
		t.Errorf("body %q, Proxy-Status %q", body, resp.Header.Get("Proxy-Status"))
	}
	wantEvents(t, g.events, "blocked GET origin.test:443 / tls_certificate_error")
}

func TestInterceptWrongNameAtTheOrigin(t *testing.T) {
	g := tlsGate(t, func(w http.ResponseWriter, r *http.Request) { t.Error("reached") }, nil, "GET https://other.test/**")
	resp, _ := fetch(t, g.httpsClient(t), "https://other.test/") // the origin's certificate says origin.test
	equal(t, "status", resp.StatusCode, 502)
}

func TestInterceptOff(t *testing.T) {
	for name, spoil := range map[string]func(*webGate){
		"no CA": func(g *webGate) { g.s.CA = nil },
		"a host the CA was not made for": func(g *webGate) {
			a, err := ca.New([]string{"elsewhere.test"})
			if err != nil {
				t.Fatal(err)
			}
			g.s.CA = a
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := tlsGate(t, func(w http.ResponseWriter, r *http.Request) { t.Error("reached") }, nil, "GET https://origin.test/**")
			spoil(g)
			_, err := g.insideSkip(t, "origin.test")
			if err == nil || !strings.Contains(err.Error(), "access denied") {
				t.Errorf("handshake: %v", err)
			}
			wantEvents(t, g.events, "blocked  origin.test:443  intercept_off")
			equal(t, "dials", g.dials.Load(), 0)
		})
	}
}

func TestSecrets(t *testing.T) {
	origin, _ := policy.ParseHost("origin.test")
	seen := make(chan http.Header, 1)
	h := func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		r.Header.Set("X-Body", string(b))
		r.Header.Set("X-Uri", r.RequestURI)
		seen <- r.Header
	}
	secrets := []policy.Secret{{Env: "TOKEN", Header: "authorization", Hosts: []policy.Host{origin}}}
	g := tlsGate(t, h, secrets, "origin.test", "other.test")
	req, _ := http.NewRequest("POST", "https://origin.test/?t=placeholder-TOKEN", strings.NewReader("placeholder-TOKEN"))
	req.Header.Set("Authorization", "Bearer placeholder-TOKEN")
	req.Header.Set("X-Other", "placeholder-TOKEN")
	resp, err := g.httpsClient(t).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	got := <-seen
	equal(t, "the named field", got.Get("Authorization"), "Bearer "+secretWorth)
	equal(t, "another field", got.Get("X-Other"), "placeholder-TOKEN")
	equal(t, "the body", got.Get("X-Body"), "placeholder-TOKEN")
	equal(t, "the query", got.Get("X-Uri"), "/?t=placeholder-TOKEN")
	for _, e := range g.events.all {
		if strings.Contains(fmt.Sprintf("%+v", e), secretWorth) || strings.Contains(fmt.Sprintf("%+v", e), "placeholder") {
			t.Errorf("event holds a secret: %+v", e)
		}
	}
}

func TestSecretsGoNowhereElse(t *testing.T) {
	origin, _ := policy.ParseHost("origin.test")
	other, _ := policy.ParseHost("other.test")
	p, err := policy.Compile(&policy.Document{
		Allow:   []policy.Entry{{Text: "origin.test"}, {Text: "other.test"}},
		Secrets: []policy.Secret{{Env: "TOKEN", Header: "X-Key", Hosts: []policy.Host{origin}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{SecretValue: func(string) (string, string, bool) { return "ph", "worth", true }}
	for _, tt := range []struct {
		name   string
		host   policy.Host
		tls    bool
		header string
		want   string
	}{
		{"named", origin, true, "X-Key", "worth"},
		{"another host", other, true, "X-Key", "ph"},
		{"another field", origin, true, "X-Yek", "ph"},
		{"in the clear", origin, false, "X-Key", "ph"},
	} {
		h := http.Header{tt.header: {"ph"}}
		s.substitute(p, policy.Request{Host: tt.host, Port: 443}, h, tt.tls)
		equal(t, tt.name, h.Get(tt.header), tt.want)
	}
}

func TestSecretInBasicCredentials(t *testing.T) {
	basic := func(s string) string { return "Basic " + base64.StdEncoding.EncodeToString([]byte(s)) }
	equal(t, "as a password", reveal(basic("x-access-token:ph"), "ph", "worth"), basic("x-access-token:worth"))
	equal(t, "other credentials", reveal(basic("user:pass"), "ph", "worth"), basic("user:pass"))
	equal(t, "not base64", reveal("Basic ph!", "ph", "worth"), "Basic worth!")
}

// The scanner in front judged the server name; what crypto/tls reads must be
// the same name.
func TestInterceptComparesTheNameAgain(t *testing.T) {
	g := tlsGate(t, func(http.ResponseWriter, *http.Request) {}, nil, "GET https://origin.test/**")
	host, _ := policy.ParseHost("origin.test")
	for sni, ok := range map[string]bool{"origin.test": true, "other.test": false, "": false} {
		client, server := net.Pipe()
		done := make(chan struct{})
		go func() {
			defer close(done)
			g.s.serveIntercept(t.Context(), server, scope{host: host, port: 443, flow: 1})
		}()
		tc := tls.Client(client, &tls.Config{ServerName: sni, InsecureSkipVerify: true}) // the test is about the SNI alone
		if err := tc.Handshake(); (err == nil) != ok {
			t.Errorf("SNI %q: %v", sni, err)
		}
		_ = client.Close()
		<-done
	}
}

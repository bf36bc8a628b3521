package proxy

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"egressd/event"
	"egressd/policy"
	"egressd/proxy/ca"
)

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
		if tt.status == 403 {
			equal(t, tt.path, strings.HasSuffix(resp.Status, "; ask the user for --allow '"+tt.method+" https://origin.test"+tt.path+"'"), true)
		}
		equal(t, "protocol", resp.Proto, "HTTP/1.1")
		if tt.status == 200 {
			equal(t, "at the origin", string(b), "origin.test "+tt.path+" origin.test")
		}
	}
	for _, e := range g.events.find("network.connected") {
		if e.Door != "intercept" || e.Host != "origin.test" || e.Port != 443 || strings.Contains(e.Path, "?") {
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
			if !settles(func() bool { return len(g.events.find("network.connected")) > 0 }) {
				t.Fatal("no event")
			}
			wantEvents(t, g.events, "blocked  origin.test:443  intercept_off")
			if e := g.events.find("network.connected")[0]; e.Door != "intercept" || !strings.Contains(e.Error, tt.detail) {
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
			g.s.serveIntercept(t.Context(), newConn(g.s, server, event.DoorConnect), server, scope{host: host, port: 443, flow: 1})
		}()
		tc := tls.Client(client, &tls.Config{ServerName: sni, InsecureSkipVerify: true}) // the test is about the SNI alone
		if err := tc.Handshake(); (err == nil) != ok {
			t.Errorf("SNI %q: %v", sni, err)
		}
		_ = client.Close()
		<-done
	}
}

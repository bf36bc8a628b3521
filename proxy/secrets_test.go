package proxy

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"egressd/policy"
	"egressd/proxy/internal/origins"
)

// secretWorth is what must never be seen inside or in an event.
const secretWorth = "sk-real-value"

// secretFor is a secret that goes to origin.test in header.
func secretFor(header string) []policy.Secret {
	origin, _ := policy.ParseHost("origin.test")
	return []policy.Secret{{Env: "TOKEN", Header: header, Hosts: []policy.Host{origin}}}
}

// reflector answers with everything it got: fields, query, content, trailers.
func reflector(seen chan<- http.Header) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		select {
		case seen <- r.Header.Clone():
		default: // nobody asks
		}
		if err != nil {
			return
		}
		w.Header().Set("X-Echo", r.Header.Get("Authorization"))
		w.Header().Set("Trailer", "X-Late")
		_, _ = fmt.Fprintf(w, "%s %v %s", r.Method, r.Header, b)
		w.Header().Set("X-Late", r.Header.Get("Authorization"))
	}
}

// The value goes out in its field alone, and does not come back.
func TestSecrets(t *testing.T) {
	seen := make(chan http.Header, 1)
	g := tlsGate(t, reflector(seen), secretFor("authorization"), "origin.test", "other.test")
	req, _ := http.NewRequest("POST", "https://origin.test/?t=1", strings.NewReader("content"))
	req.Header.Set("Authorization", "Bearer placeholder-TOKEN")
	req.Header.Set("Accept-Encoding", "gzip")
	resp, err := g.httpsClient(t).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil {
		t.Fatal(err)
	}
	got := <-seen
	equal(t, "the named field", got.Get("Authorization"), "Bearer "+secretWorth)
	equal(t, "the encoding that is asked for", got.Get("Accept-Encoding"), "identity")
	equal(t, "a field that comes back", resp.Header.Get("X-Echo"), "Bearer "+strings.Repeat("*", len(secretWorth)))
	equal(t, "a trailer that comes back", resp.Trailer.Get("X-Late"), "Bearer "+strings.Repeat("*", len(secretWorth)))
	if strings.Contains(string(body), secretWorth) || !strings.Contains(string(body), "Bearer ***") {
		t.Errorf("the content that comes back: %s", body)
	}
	for _, e := range g.events.all {
		if strings.Contains(fmt.Sprintf("%+v", e), secretWorth) || strings.Contains(fmt.Sprintf("%+v", e), "placeholder") {
			t.Errorf("event holds a secret: %+v", e)
		}
	}
}

// A request that would come back as it is, or with a placeholder where its secret
// does not go, is denied and told.
func TestSecretsMisused(t *testing.T) {
	basic := "Basic " + base64.StdEncoding.EncodeToString([]byte("user:placeholder-TOKEN"))
	for _, tt := range []struct {
		name, method, url, field, value, body string
		reason                                string // "": allowed
	}{
		{"as it should be", "GET", "https://origin.test/", "Authorization", "Bearer placeholder-TOKEN", "", ""},
		{"in Basic credentials", "GET", "https://origin.test/", "Authorization", basic, "", ""},
		{"TRACE", "TRACE", "https://origin.test/", "Authorization", "Bearer placeholder-TOKEN", "", "reflects_request"},
		{"trace", "trace", "https://origin.test/", "Authorization", "x", "", "reflects_request"},
		{"TRACK", "TRACK", "https://origin.test/", "Authorization", "x", "", "reflects_request"},
		{"TRACE elsewhere inside TLS", "TRACE", "https://other.test/a", "X-Other", "x", "", "reflects_request"},
		{"OPTIONS that comes back", "OPTIONS", "https://origin.test/", "Max-Forwards", "0", "", "reflects_request"},
		{"OPTIONS", "OPTIONS", "https://origin.test/", "X-Other", "0", "", ""},
		{"another field", "GET", "https://origin.test/", "X-Other", "placeholder-TOKEN", "", "secret_misplaced"},
		{"the query", "GET", "https://origin.test/?t=placeholder-TOKEN", "X-Other", "x", "", "secret_misplaced"},
		{"the path", "GET", "https://origin.test/placeholder-TOKEN", "X-Other", "x", "", "secret_misplaced"},
		{"the content", "POST", "https://origin.test/", "X-Other", "x", strings.Repeat("x", 70000) + "placeholder-TOKEN and more", "secret_misplaced"},
		{"short content", "POST", "https://origin.test/", "X-Other", "x", "placeholder-TOKEN", "secret_misplaced"},
		{"another host inside TLS", "GET", "https://other.test/a", "Authorization", "placeholder-TOKEN", "", "secret_misplaced"},
		{"another host, Basic", "GET", "https://other.test/a", "Authorization", basic, "", "secret_misplaced"},
		{"in the clear", "GET", "http://origin.test/", "Authorization", "placeholder-TOKEN", "", "secret_misplaced"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			seen := make(chan http.Header, 1)
			g := tlsGate(t, reflector(seen), secretFor("Authorization"), "origin.test", "* https://other.test/**")
			req, err := http.NewRequest(tt.method, tt.url, strings.NewReader(tt.body))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set(tt.field, tt.value)
			resp, err := g.httpsClient(t).Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			equal(t, "reason", resp.Header.Get("X-Egressd-Reason"), tt.reason)
			if all := strings.Join(g.events.decisions(), "\n"); tt.reason != "" && !strings.Contains(all, tt.reason) {
				t.Errorf("not told: %s", all)
			}
		})
	}
}

func TestSecretsMisusedInTheClear(t *testing.T) {
	seen := make(chan http.Header, 1)
	o := httptest.NewServer(reflector(seen))
	t.Cleanup(o.Close)
	g := newWebGate(t, o.Listener.Addr().String(), "origin.test")
	p, err := policy.Compile(&policy.Document{
		Secrets: secretFor("Authorization"), Allow: []policy.Entry{{Text: "origin.test"}}, Hosts: []policy.Entry{{Text: "origin.test=127.0.0.1"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	g.s.Policy.Store(p)
	g.s.SecretValue = func(string) (string, string, bool) { return "placeholder-TOKEN", secretWorth, true }
	for _, body := range []string{"placeholder-TOKEN", strings.Repeat("x", 70000) + "placeholder-TOKEN and more"} {
		resp, err := g.client().Post("http://origin.test/", "text/plain", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		equal(t, "reason", resp.Header.Get("X-Egressd-Reason"), "secret_misplaced")
		if all := strings.Join(g.events.decisions(), "\n"); !strings.Contains(all, "secret_misplaced") {
			t.Errorf("not told: %s", all)
		}
	}
}

// A policy that audits tells, and lets pass what is worth nothing.
func TestSecretsMisusedUnderAudit(t *testing.T) {
	seen := make(chan http.Header, 1)
	g := tlsGate(t, reflector(seen), secretFor("Authorization"), "origin.test")
	doc := &policy.Document{Audit: true, Secrets: secretFor("Authorization"), Allow: []policy.Entry{{Text: "origin.test"}}, Hosts: []policy.Entry{{Text: "origin.test=127.0.0.1"}}}
	p, err := policy.Compile(doc)
	if err != nil {
		t.Fatal(err)
	}
	g.s.Policy.Store(p)
	resp, err := g.httpsClient(t).Post("https://origin.test/", "text/plain", strings.NewReader("placeholder-TOKEN"))
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	equal(t, "status", resp.StatusCode, 200)
	if all := strings.Join(g.events.decisions(), "\n"); !strings.Contains(all, "secret_misplaced") {
		t.Errorf("not told: %s", all)
	}
}

func TestSecretsGoNowhereElse(t *testing.T) {
	origin, _ := policy.ParseHost("origin.test")
	other, _ := policy.ParseHost("other.test")
	doc, err := policy.ParseFile("f", []byte(`
allow: [origin.test, "origin.test:8443,9443", other.test]
secrets: [{env: TOKEN, header: X-Key, hosts: [origin.test, "origin.test:9443"]}]
`))
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Compile(doc)
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{Interception: Interception{SecretValue: func(string) (string, string, bool) { return "ph", "worth", true }}}
	for _, tt := range []struct {
		name   string
		host   policy.Host
		port   uint16
		tls    bool
		header string
		want   string
	}{
		{"named", origin, 443, true, "X-Key", "worth"},
		{"named with its port", origin, 9443, true, "X-Key", "worth"},
		{"another host", other, 443, true, "X-Key", "ph"},
		{"another port", origin, 8443, true, "X-Key", "ph"},
		{"another field", origin, 443, true, "X-Yek", "ph"},
		{"in the clear", origin, 443, false, "X-Key", "ph"},
	} {
		h := http.Header{tt.header: {"ph"}}
		x := &exchange{h: &httpConn{s: s}, up: &origins.Pool{Policy: p}, sc: scope{tls: tt.tls}, req: policy.Request{Host: tt.host, Port: tt.port}}
		x.Outgoing(&http.Request{Header: h})
		equal(t, tt.name, h.Get(tt.header), tt.want)
	}
}

// An origin that compresses although it was asked not to is not passed on.
func TestSecretsInCompressedContent(t *testing.T) {
	g := tlsGate(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "br")
		_, _ = io.WriteString(w, "anything")
	}, secretFor("Authorization"), "origin.test")
	resp, err := g.httpsClient(t).Get("https://origin.test/")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	equal(t, "reason", resp.Header.Get("X-Egressd-Reason"), "connection_terminated")
}

// Messages after an upgrade are masked as well, and compression is not offered.
func TestSecretsAfterUpgrade(t *testing.T) {
	g := tlsGate(t, func(w http.ResponseWriter, r *http.Request) {
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		_, _ = fmt.Fprintf(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nhere: %s %s.",
			r.Header.Get("Sec-Websocket-Extensions"), r.Header.Get("Authorization"))
	}, secretFor("Authorization"), "origin.test")
	c, err := g.inside(t, "origin.test")
	if err != nil {
		t.Fatal(err)
	}
	c.send("GET / HTTP/1.1\r\nHost: origin.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nAuthorization: placeholder-TOKEN\r\nSec-WebSocket-Extensions: permessage-deflate\r\n\r\n")
	resp, err := http.ReadResponse(c.r, nil)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "status", resp.StatusCode, 101)
	rest, _ := io.ReadAll(c.r) // the end comes as the origin's close
	equal(t, "the message", string(rest), "here:  "+strings.Repeat("*", len(secretWorth))+".")
}

// A connection on which a client logged in carries no other client's requests.
func TestBoundLogins(t *testing.T) {
	for _, tt := range []struct {
		name, request, response string
		shared                  bool
	}{
		{"Basic", "Authorization: Basic eDp5\r\n", "", true},
		{"Negotiate", "Authorization: Negotiate YII=\r\n", "", false},
		{"ntlm", "Authorization: ntlm TlRMTVNTUAAB\r\n", "", false},
		{"Kerberos", "Authorization: Kerberos YII=\r\n", "", false},
		{"after it was offered", "", "WWW-Authenticate: Basic realm=\"x\", Negotiate\r\n", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := rawOrigin(t, func(c net.Conn, r *bufio.Reader) {
				for n := 0; ; n++ {
					if _, err := http.ReadRequest(r); err != nil {
						return
					}
					body := fmt.Sprintf("%s %d", c.RemoteAddr(), n)
					_, _ = fmt.Fprintf(c, "HTTP/1.1 200 OK\r\n%sContent-Length: %d\r\n\r\n%s", tt.response, len(body), body)
				}
			})
			g := newWebGate(t, o.addr, "origin.test")
			ask := func(c *rawConn, fields string) string {
				c.send("GET http://origin.test/ HTTP/1.1\r\nHost: origin.test\r\n" + fields + "\r\n")
				resp, err := http.ReadResponse(c.r, nil)
				if err != nil {
					t.Fatal(err)
				}
				b, err := io.ReadAll(resp.Body)
				if err != nil {
					t.Fatal(err)
				}
				from, _, _ := strings.Cut(string(b), " ")
				return from
			}
			first, second := g.dial(), g.dial()
			ask(first, tt.request)
			one := ask(first, "") // logged in, and says nothing more
			equal(t, "the same client", ask(first, ""), one)
			equal(t, "shared with another client", ask(second, "") == one, tt.shared)
		})
	}
}

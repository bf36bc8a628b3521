package proxy

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

func TestHTTPForwards(t *testing.T) {
	heads := make(chan string, 1)
	const answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\nConnection: X-Hop, keep-alive\r\nX-Hop: 1\r\nKeep-Alive: timeout=5\r\nProxy-Authenticate: Basic\r\n\r\nok"
	o := rawOrigin(t, func(c net.Conn, r *bufio.Reader) {
		heads <- rawHead(t, r)
		_, _ = io.WriteString(c, answer)
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
	if !settles(func() bool { return len(g.events.find("network.closed")) == 1 }) {
		t.Fatal("no network.closed")
	}
	if e := g.events.find("network.closed")[0]; e.BytesIn != int64(len(answer)) || e.BytesOut != int64(len(want)) || e.Flow == 0 {
		t.Errorf("closed: %+v", e)
	}
	if e := g.events.find("network.connected")[0]; e.Addr != o.addr || e.Door != "http" || e.Rule != "origin.test" {
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

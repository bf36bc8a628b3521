package proxy

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"egressd/policy"
)

func TestHTTPTruncatedResponseIsNotMadeWhole(t *testing.T) {
	for _, head := range []string{"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", "Content-Length: 10\r\n\r\nhello", "Content-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"} {
		o := rawOrigin(t, func(c net.Conn, r *bufio.Reader) {
			rawHead(t, r)
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n"+head)
		})
		g := newWebGate(t, o.addr, "origin.test")
		resp, err := g.client().Get("http://origin.test/")
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err == nil || string(b) != "hello" {
			t.Errorf("%q: got %q, %v", head, b, err)
		}
	}
}

func TestHTTPUpstreamFailures(t *testing.T) {
	for _, tt := range []struct {
		name   string
		serve  func(c net.Conn, r *bufio.Reader)
		reason string
	}{
		{"closes at once", func(net.Conn, *bufio.Reader) {}, "connection_terminated"},
		{"closes after the request", func(c net.Conn, r *bufio.Reader) { rawHead(t, r) }, "connection_terminated"},
		{"is not HTTP", func(c net.Conn, r *bufio.Reader) { _, _ = io.WriteString(c, "SSH-2.0-x\r\n\r\n"); rawHead(t, r) }, "connection_terminated"},
		{"switches unasked", func(c net.Conn, r *bufio.Reader) {
			rawHead(t, r)
			_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
		}, "connection_terminated"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := rawOrigin(t, tt.serve)
			g := newWebGate(t, o.addr, "origin.test")
			resp, body := fetch(t, g.client(), "http://origin.test/")
			equal(t, "status", resp.StatusCode, 502)
			equal(t, "reason", resp.Header.Get("X-Egressd-Reason"), tt.reason)
			if strings.Contains(body, "SSH") {
				t.Errorf("the body reflects the origin: %q", body)
			}
		})
	}
	t.Run("refuses", func(t *testing.T) {
		ln := listenLocal(t)
		addr := ln.Addr().String()
		_ = ln.Close()
		g := newWebGate(t, addr, "origin.test")
		resp, _ := fetch(t, g.client(), "http://origin.test/")
		equal(t, "status", resp.StatusCode, 502)
		equal(t, "reason", resp.Header.Get("X-Egressd-Reason"), "connection_refused")
		wantEvents(t, g.events, "blocked GET origin.test:80 / connection_refused")
	})
}

func TestHTTPUpgrade(t *testing.T) {
	o := rawOrigin(t, func(c net.Conn, r *bufio.Reader) {
		h := rawHead(t, r)
		if !strings.Contains(h, "Upgrade: websocket") || !strings.Contains(h, "Connection: Upgrade") || !strings.Contains(h, "Sec-Websocket-Key: k") {
			_, _ = io.WriteString(c, "HTTP/1.1 400 Bad\r\nContent-Length: 0\r\n\r\n")
			return
		}
		_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-Websocket-Accept: a\r\n\r\nhello ")
		_, _ = io.Copy(c, r) // until the client half-closes
		_, _ = io.WriteString(c, " bye")
	})
	g := newWebGate(t, o.addr, "origin.test")
	c := g.dial()
	// The first frame comes with the request, and holds what a strict reader of
	// heads would choke on.
	c.send("GET http://origin.test/ws HTTP/1.1\r\nHost: origin.test\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: k\r\n\r\n\x81\x00\n\n")
	first := make([]byte, 512)
	n, err := c.Conn.Read(first)
	if err != nil || !strings.Contains(string(first[:n]), "\r\n\r\n") {
		t.Fatalf("the 101 came in pieces: %q, %v", first[:n], err)
	}
	if !strings.HasPrefix(string(first[:n]), "HTTP/1.1 101 Switching Protocols\r\n") {
		t.Fatalf("got %q", first[:n])
	}
	c.send("frame two")
	_ = c.Conn.(*net.TCPConn).CloseWrite()
	rest, err := io.ReadAll(c.Conn)
	_, early, _ := strings.Cut(string(first[:n]), "\r\n\r\n")
	if got := early + string(rest); err != nil || got != "hello \x81\x00\n\nframe two bye" {
		t.Errorf("got %q, %v", got, err)
	}
	wantEvents(t, g.events, "allowed GET origin.test:80 /ws allowed")
	if !settles(func() bool { return len(g.events.find("network.closed")) == 1 }) {
		t.Fatal("no network.closed")
	}
	if e := g.events.find("network.closed")[0]; e.BytesIn != 102+23 || e.Error != "" {
		t.Errorf("closed: %+v", e)
	}
}

func TestHTTPUpgradeNotGranted(t *testing.T) {
	o := newWebOrigin(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Header["Upgrade"], r.URL.Path) })
	g := newWebGate(t, o.addr, "origin.test")
	c := g.dial()
	for _, tt := range []struct{ upgrade, want string }{
		{"Connection: Upgrade\r\nUpgrade: websocket\r\n", "[websocket]/x"},
		{"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n", "[]/x"},
		{"Connection: Upgrade\r\nUpgrade: TLS/1.2\r\n", "[]/x"},
		{"Upgrade: websocket\r\n", "[]/x"},
		{"", "[]/x"},
	} {
		c.send("GET http://origin.test/x HTTP/1.1\r\nHost: origin.test\r\n" + tt.upgrade + "\r\n")
		resp, body := c.response("GET")
		equal(t, tt.upgrade, resp.StatusCode, 200)
		equal(t, tt.upgrade, body, tt.want)
	}
}

func TestHTTPUpgradeToAnotherProtocol(t *testing.T) {
	o := rawOrigin(t, func(c net.Conn, r *bufio.Reader) {
		rawHead(t, r)
		_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: smuggle\r\nConnection: Upgrade\r\n\r\n")
	})
	g := newWebGate(t, o.addr, "origin.test")
	c := g.dial()
	c.send("GET http://origin.test/x HTTP/1.1\r\nHost: origin.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	resp, _ := c.response("GET")
	equal(t, "status", resp.StatusCode, 502)
}

func TestHTTPConnectionsAreReused(t *testing.T) {
	o := newWebOrigin(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "ok") })
	g := newWebGate(t, o.addr, "origin.test", "other.test")
	for range 3 {
		fetch(t, g.client(), "http://origin.test/")
	}
	equal(t, "dials for one host", g.dials.Load(), 1)
	fetch(t, g.client(), "http://other.test/")
	equal(t, "dials for another host at the same address", g.dials.Load(), 2)
	g.s.Policy.Store(policyOf(t, "origin.test"))
	fetch(t, g.client(), "http://origin.test/")
	equal(t, "dials after the policy changed", g.dials.Load(), 3)
	resp, _ := fetch(t, g.client(), "http://other.test/")
	equal(t, "status of what is denied now", resp.StatusCode, 403)
}

func TestHTTPRejudgeEndsAStream(t *testing.T) {
	o := newWebOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	g := newWebGate(t, o.addr, "origin.test")
	resp, err := g.client().Get("http://origin.test/")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	g.s.Policy.Store(policyOf(t, "other.test"))
	equal(t, "closed", g.s.Rejudge(), 1)
	if _, err := io.ReadAll(resp.Body); err == nil {
		t.Error("the stream ended as if it were whole")
	}
}

func TestHTTPByteLimit(t *testing.T) {
	o := newWebOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		_, _ = io.CopyN(w, new(pattern), 1000-n)
	})
	g := newWebGate(t, o.addr, "origin.test")
	p, err := policy.Compile(&policy.Document{
		Allow:  []policy.Entry{{Text: "origin.test"}},
		Hosts:  []policy.Entry{{Text: "origin.test=127.0.0.1"}},
		Limits: policy.Limits{BytesPerFlow: 1000},
	})
	if err != nil {
		t.Fatal(err)
	}
	g.s.Policy.Store(p)
	c := g.client()
	for range 2 { // the limit is for each request
		_, body := fetch(t, c, "http://origin.test/")
		equal(t, "bytes", len(body), 1000)
	}
	resp, err := c.Post("http://origin.test/", "", strings.NewReader(strings.Repeat("x", 1001)))
	if err == nil {
		_ = resp.Body.Close()
		equal(t, "status of what is too long", resp.StatusCode, 503)
	}
}

func TestHTTPLeavesNothingBehind(t *testing.T) {
	o := newWebOrigin(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "ok") })
	g := newWebGate(t, o.addr, "origin.test")
	before := runtime.NumGoroutine()
	ctx, cancel := context.WithCancel(t.Context())
	for i := range 200 {
		c := g.dial()
		host := []string{"origin.test", "denied.test"}[i%2]
		c.send("GET http://" + host + "/ HTTP/1.1\r\nHost: " + host + "\r\n\r\n")
		if i%5 != 0 {
			c.response("GET")
		}
		_ = c.Close()
	}
	cancel()
	_ = ctx
	g.closed()
	if !settles(func() bool { return runtime.NumGoroutine() <= before }) {
		buf := make([]byte, 1<<20)
		t.Errorf("%d goroutines before, %d after:\n%s", before, runtime.NumGoroutine(), buf[:runtime.Stack(buf, true)])
	}
}

func BenchmarkHTTPDoor(b *testing.B) {
	body := strings.Repeat("x", 1024)
	o := newWebOrigin(b, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, body) })
	for _, via := range []string{"direct", "door"} {
		b.Run(via, func(b *testing.B) {
			g := newWebGate(b, o.addr, "origin.test")
			if via == "direct" {
				g.addr = o.addr
			}
			c := g.dial()
			b.ReportAllocs()
			for b.Loop() {
				_, _ = io.WriteString(c.Conn, "GET http://origin.test/ HTTP/1.1\r\nHost: origin.test\r\n\r\n")
				if resp, _ := c.response("GET"); resp.StatusCode != 200 {
					b.Fatal(resp.Status)
				}
			}
		})
	}
}

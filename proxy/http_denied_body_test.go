package proxy

import (
	"bufio"
	"io"
	"net"
	"strings"
	"testing"
)

// A denial does not wait for the body of the request: an upload that takes its
// time is told at once.
func TestHTTPDenialBeforeTheBody(t *testing.T) {
	for name, head := range map[string]string{
		"length":  "Content-Length: 1000\r\n\r\nx",
		"chunked": "Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			g := newWebGate(t, "", "origin.test")
			c := g.dial()
			c.send("POST http://denied.test/ HTTP/1.1\r\nHost: denied.test\r\n" + head)
			resp, _ := c.response("POST") // fails when the answer does not come in time
			equal(t, "status", resp.StatusCode, 403)
		})
	}
}

// After a denial whose request had a body, the connection goes on in step.
func TestHTTPDenialKeepsStep(t *testing.T) {
	g := newWebGate(t, "", "origin.test")
	c := g.dial()
	const inner = "GET http://origin.test/smuggled HTTP/1.1\r\nHost: origin.test\r\n\r\n"
	for range 2 {
		c.send("POST http://denied.test/ HTTP/1.1\r\nHost: denied.test\r\nContent-Length: " + portText(uint16(len(inner))) + "\r\n\r\n" + inner)
		resp, _ := c.response("POST")
		equal(t, "status", resp.StatusCode, 403)
	}
	equal(t, "dials", g.dials.Load(), 0)
	wantEvents(t, g.events, "blocked POST denied.test:80 / host_not_listed", "blocked POST denied.test:80 / host_not_listed")
}

// A CONNECT without a Host is served the same on a kept connection as on a new
// one.
func TestHTTPConnectWithoutHostOnAKeptConnection(t *testing.T) {
	g := newWebGate(t, "", "origin.test")
	c := g.dial()
	c.send("GET http://denied.test/ HTTP/1.1\r\nHost: denied.test\r\n\r\n")
	c.response("GET")
	c.send("CONNECT denied.test:443 HTTP/1.1\r\nContent-Length: 0\r\n\r\n")
	resp, _ := c.response("GET")
	equal(t, "status", resp.StatusCode, 403)
	wantEvents(t, g.events, "blocked GET denied.test:80 / host_not_listed", "blocked  denied.test:443  host_not_listed")
}

// The status line of a denial says why, and that of no other response does,
// however requests follow each other on a connection.
func TestHTTPDenialPhrase(t *testing.T) {
	o := rawOrigin(t, func(c net.Conn, r *bufio.Reader) {
		for rawHead(t, r) != "" {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		}
	})
	g := newWebGate(t, o.addr, "origin.test")
	c := g.dial()
	get := func(host string) string {
		return "GET http://" + host + "/ HTTP/1.1\r\nHost: " + host + "\r\n\r\n"
	}
	c.send(get("denied.test") + get("origin.test") + get("other.test") + get("origin.test"))
	for _, want := range []string{
		"403 Blocked by egressd: denied.test:80: no rule allows this host; ask the user for --allow denied.test",
		"200 OK",
		"403 Blocked by egressd: other.test:80: no rule allows this host; ask the user for --allow other.test",
		"200 OK",
	} {
		resp, _ := c.response("GET")
		equal(t, "status line", resp.Status, want)
	}
	c.send("GET http://" + strings.Repeat("a", 64) + ".test/ HTTP/1.1\r\nHost: x\r\n\r\n")
	resp, _ := c.response("GET")
	if !strings.HasPrefix(resp.Status, "400 Bad Request: egressd: ") {
		t.Errorf("status line %q", resp.Status)
	}
}

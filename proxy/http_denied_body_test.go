package proxy

import "testing"

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

package proxy

import (
	"io"
	"net"
	"strings"
	"testing"

	"egressd/policy"
)

// TestConnectHeads sends heads that can be read in more than one way, or not
// at all, and some that look odd and are fine.
func TestConnectHeads(t *testing.T) {
	tests := []struct {
		name   string
		head   string
		status string
		reason string
	}{
		{"plain", "CONNECT a.example:22 HTTP/1.1\r\nHost: a.example:22\r\n\r\n", "200", "allowed"},
		{"HTTP/1.0", "CONNECT a.example:22 HTTP/1.0\r\n\r\n", "200", "allowed"},
		{"Host without port", "CONNECT a.example:22 HTTP/1.1\r\nHost: A.example\r\n\r\n", "200", "allowed"},
		{"credentials are ignored", "CONNECT a.example:22 HTTP/1.1\r\nProxy-Authorization: Basic eDp5\r\n\r\n", "200", "allowed"},
		{"root dot", "CONNECT a.example.:22 HTTP/1.1\r\n\r\n", "200", "allowed"},

		{"no port", "CONNECT a.example HTTP/1.1\r\n\r\n", "400", "http_request_error"},
		{"empty port", "CONNECT a.example: HTTP/1.1\r\n\r\n", "400", "http_request_error"},
		{"leading zero", "CONNECT a.example:022 HTTP/1.1\r\n\r\n", "400", "http_request_error"},
		{"port 0", "CONNECT a.example:0 HTTP/1.1\r\n\r\n", "400", "http_request_error"},
		{"port too large", "CONNECT a.example:65558 HTTP/1.1\r\n\r\n", "400", "http_request_error"},
		{"port name", "CONNECT a.example:ssh HTTP/1.1\r\n\r\n", "400", "http_request_error"},
		{"sign", "CONNECT a.example:+22 HTTP/1.1\r\n\r\n", "400", "http_request_error"},
		{"bracketed name", "CONNECT [a.example]:22 HTTP/1.1\r\n\r\n", "400", "http_request_error"},
		{"userinfo", "CONNECT u@a.example:22 HTTP/1.1\r\n\r\n", "400", "http_request_error"},
		{"absolute URI", "CONNECT http://a.example:22/ HTTP/1.1\r\n\r\n", "400", "http_request_error"},
		{"path", "CONNECT a.example:22/ HTTP/1.1\r\n\r\n", "400", "http_request_error"},
		{"zone", "CONNECT [fe80::1%25eth0]:22 HTTP/1.1\r\n\r\n", "400", "http_request_error"},
		{"hex address", "CONNECT 0x7f.0.0.1:22 HTTP/1.1\r\n\r\n", "400", "http_request_error"},
		{"octal address", "CONNECT 0177.0.0.1:22 HTTP/1.1\r\n\r\n", "400", "http_request_error"},
		{"one-number address", "CONNECT 2130706433:22 HTTP/1.1\r\n\r\n", "400", "http_request_error"},
		{"empty label", "CONNECT a..example:22 HTTP/1.1\r\n\r\n", "400", "http_request_error"},
		{"two spaces", "CONNECT  a.example:22 HTTP/1.1\r\n\r\n", "400", "http_request_error"},
		{"bare LF", "CONNECT a.example:22 HTTP/1.1\nHost: a.example:22\n\n", "400", "http_request_error"},
		{"bare CR", "CONNECT a.example:22 HTTP/1.1\rX: y\r\n\r\n", "400", "http_request_error"},
		{"NUL", "CONNECT a.example\x00.evil:22 HTTP/1.1\r\n\r\n", "400", "http_request_error"},
		{"content", "CONNECT a.example:22 HTTP/1.1\r\nContent-Length: 4\r\n\r\n", "400", "http_request_error"},
		{"head too long", "CONNECT a.example:22 HTTP/1.1\r\nX: " + strings.Repeat("x", policy.DefaultLimits().HeadBytes) + "\r\n\r\n", "400", "http_request_error"},
		{"another Host", "CONNECT a.example:22 HTTP/1.1\r\nHost: evil.example:22\r\n\r\n", "403", "host_mismatch"},
		{"another port in Host", "CONNECT a.example:22 HTTP/1.1\r\nHost: a.example:23\r\n\r\n", "403", "host_mismatch"},
		{"loopback in IPv6", "CONNECT [::ffff:127.0.0.1]:22 HTTP/1.1\r\n\r\n", "403", "destination_ip_prohibited"},
		{"NAT64 metadata", "CONNECT [64:ff9b::a9fe:a9fe]:22 HTTP/1.1\r\n\r\n", "403", "destination_ip_prohibited"},
		{"binary", "\x01\x02\x03\r\n\r\n", "400", "http_request_error"},
	}
	plain := serveOrigin(t, echo)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := newGate(t, "a.example:22").start()
			g.name("a.example", 22, plain)
			c := dialGate(g, g.explicitAddr)
			_, _ = io.WriteString(c, tt.head)
			head, err := headOf(c)
			if !strings.HasPrefix(head, "HTTP/1.1 "+tt.status+" ") {
				t.Errorf("answer %q, %v; want %s", head, err, tt.status)
			}
			if tt.status == "200" {
				if !pingPong(c) {
					t.Error("the tunnel carries nothing")
				}
				c.Close()
			}
			if d := g.decision(1); d.Reason != tt.reason {
				t.Errorf("reason %q, want %q: %+v", d.Reason, tt.reason, d)
			}
			if n := g.lookups.Load() + g.dials.Load(); tt.status != "200" && n != 0 {
				t.Errorf("%d look-ups and connections for a refused head", n)
			}
		})
	}
}

// TestConnectPipelined sends the first bytes of the tunnel with the head.
func TestConnectPipelined(t *testing.T) {
	g := newGate(t, "a.example:22").start()
	g.name("a.example", 22, serveOrigin(t, echo))
	c := dialGate(g, g.explicitAddr)
	_, _ = io.WriteString(c, "CONNECT a.example:22 HTTP/1.1\r\n\r\nearly ")
	if head, err := headOf(c); err != nil {
		t.Fatal(head, err)
	}
	_, _ = io.WriteString(c, "late")
	_ = c.(*net.TCPConn).CloseWrite()
	if got, err := io.ReadAll(c); string(got) != "early late" {
		t.Errorf("got %q, %v", got, err)
	}
	end := g.event("network.closed", 1)
	if end.BytesOut != 10 || end.BytesIn != 10 {
		t.Errorf("%d bytes out, %d in; want 10 and 10", end.BytesOut, end.BytesIn)
	}
}

// TestConnectByteByByte checks that a slow but steady client is served.
func TestConnectByteByByte(t *testing.T) {
	g := newGate(t, "a.example").start()
	g.name("a.example", 443, serveOrigin(t, tlsEcho))
	c := dialGate(g, g.explicitAddr)
	for _, b := range []byte("CONNECT a.example:443 HTTP/1.1\r\n\r\n") {
		_, _ = c.Write([]byte{b})
	}
	if head, err := headOf(c); err != nil {
		t.Fatal(head, err)
	}
	if !speakTLS("a.example")(oneByte{c}) {
		t.Error("no answer through the tunnel")
	}
}

// oneByte writes byte by byte.
type oneByte struct{ net.Conn }

func (o oneByte) Write(p []byte) (int, error) {
	for i := range p {
		if _, err := o.Conn.Write(p[i : i+1]); err != nil {
			return i, err
		}
	}
	return len(p), nil
}

// TestTLSToProxyPort checks that an https:// proxy URL ends in an alert.
func TestTLSToProxyPort(t *testing.T) {
	g := newGate(t, "a.example").start()
	c := dialGate(g, g.explicitAddr)
	if err := handshake(c, "a.example"); err == nil || !strings.Contains(err.Error(), "access denied") {
		t.Errorf("%v, want an access_denied alert", err)
	}
	if d := g.decision(1); d.Reason != "http_request_error" || d.Decision != "blocked" {
		t.Errorf("%+v", d)
	}
}

// TestDeniedTLSGetsAnAlert checks what a client sees that was told 200 and
// then sent another name.
func TestDeniedTLSGetsAnAlert(t *testing.T) {
	for _, door := range clients() {
		g := newGate(t, "a.example").start()
		g.name("a.example", 443, "")
		c, err := door.open(g, "a.example", 443)
		if err != nil {
			t.Fatal(door.name, err)
		}
		err = handshake(c, "evil.example")
		if err == nil || !strings.Contains(err.Error(), "access denied") {
			t.Errorf("%s: %v, want an access_denied alert", door.name, err)
		}
	}
}

// TestDenialArrives sends more than the head: what the gate leaves unread must
// not turn the denial into a reset.
func TestDenialArrives(t *testing.T) {
	g := newGate(t, "a.example").start()
	c := dialGate(g, g.explicitAddr)
	_, _ = io.WriteString(c, "CONNECT evil.example:443 HTTP/1.1\r\n\r\n"+strings.Repeat("x", 20000))
	g.decision(1)
	if b, err := io.ReadAll(c); err != nil || !strings.HasPrefix(string(b), "HTTP/1.1 403 ") {
		t.Errorf("%q, %v", b, err)
	}
}

package proxy

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"egressd/proxy/internal/socket"
)

func handshake(c net.Conn, sni string) error {
	return tls.Client(c, &tls.Config{ServerName: sni, InsecureSkipVerify: true}).Handshake()
}

// TestCapturedLiteral connects to addresses without going through the DNS
// door: the name in the first bytes is judged, and the address never dialled.
func TestCapturedLiteral(t *testing.T) {
	tests := []struct {
		name   string
		dst    string
		say    speak
		host   string // as judged
		reason string
		dials  int64
	}{
		{"SNI of a listed name", "10.9.9.9:443", speakTLS("a.example"), "a.example", "allowed", 1},
		{"SNI of an unlisted name", "10.9.9.9:443", speakTLS("evil.example"), "evil.example", "host_not_listed", 0},
		{"public address, SNI of a listed name", "8.8.8.8:443", speakTLS("a.example"), "a.example", "allowed", 1},
		{"no SNI", "10.9.9.9:443", speakTLS("10.9.9.9"), "10.9.9.9", "destination_ip_prohibited", 0},
		{"no TLS", "8.8.8.8:443", speakRaw, "8.8.8.8", "host_not_listed", 0},
		{"Host of a listed name", "10.9.9.9:80", speakHTTP("a.example"), "a.example", "allowed", 1},
		{"Host of an unlisted name", "10.9.9.9:80", speakHTTP("evil.example"), "evil.example", "host_not_listed", 0},
		{"another port", "8.8.8.8:22", speakRaw, "8.8.8.8", "host_not_listed", 0},
		{"synthetic, never handed out", "198.18.1.1:443", speakTLS("a.example"), "198.18.1.1", "destination_ip_prohibited", 0},
		{"address rule", "93.184.216.40:443", speakTLS("93.184.216.40"), "93.184.216.40", "allowed", 1},
		{"address rule, SNI of a listed name", "93.184.216.40:443", speakTLS("a.example"), "a.example", "allowed", 1},
		{"address rule, SNI of an unlisted name", "93.184.216.40:443", speakTLS("evil.example"), "93.184.216.40", "sni_mismatch", 0},
		{"denied address", "203.0.113.9:443", speakTLS("a.example"), "203.0.113.9", "denied_by_rule", 0},
	}
	tlsOrigin, web := serveOrigin(t, tlsEcho), serveOrigin(t, httpOK)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := newGate(t, "a.example", "93.184.216.40:443", "deny 203.0.113.0/24").start()
			g.name("a.example", 443, tlsOrigin)
			g.name("a.example", 80, web)
			g.leads("93.184.216.40:443", tlsOrigin)
			dst := netip.MustParseAddrPort(tt.dst)
			g.capturedDst.Store(dst)
			passed := false
			if c, err := net.Dial("tcp", g.captureAddr); err == nil {
				defer c.Close()
				passed = tt.say(c)
			}
			d := g.decision(1)
			if d.Host != tt.host || d.Reason != tt.reason || passed != (tt.reason == "allowed") {
				t.Errorf("passed %v: %+v", passed, d)
			}
			if n := g.dials.Load(); n != tt.dials {
				t.Errorf("%d connections, want %d", n, tt.dials)
			}
			if n := len(g.sink.all("network.connected")); n != 1 {
				t.Errorf("%d decisions", n)
			}
		})
	}
}

// TestCapturedDenials checks the words for "no" on captured connections.
func TestCapturedDenials(t *testing.T) {
	open := func(t *testing.T, dst string) (*testGate, net.Conn, error) {
		g := newGate(t, "a.example").start()
		g.capturedDst.Store(netip.MustParseAddrPort(dst))
		g.pin(mustAddr("198.18.0.9"), hostOf(t, "evil.example"))
		c, err := net.Dial("tcp", g.captureAddr)
		return g, c, err
	}
	t.Run("443", func(t *testing.T) {
		_, c, err := open(t, "198.18.0.9:443")
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if err := handshake(c, "evil.example"); err == nil || !strings.Contains(err.Error(), "access denied") {
			t.Errorf("%v, want an access_denied alert", err)
		}
	})
	t.Run("80", func(t *testing.T) {
		_, c, err := open(t, "198.18.0.9:80")
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n")
		if head, err := headOf(c); !strings.HasPrefix(head, "HTTP/1.1 403 ") {
			t.Errorf("%q, %v", head, err)
		}
	})
	t.Run("22, SSH", func(t *testing.T) {
		_, c, err := open(t, "198.18.0.9:22")
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_, _ = io.WriteString(c, "SSH-2.0-OpenSSH_9.2\r\n")
		said, err := io.ReadAll(c)
		if err != nil || !strings.HasPrefix(string(said), "SSH-2.0-egressd\r\n") ||
			!strings.Contains(string(said), "Blocked by egressd: evil.example:22: no rule allows this host; ask the user for --allow evil.example:22") {
			t.Errorf("%q, %v", said, err)
		}
	})
	for _, first := range []string{"HELP\n", "SS", "SSL-2.0\n", "\x00"} {
		t.Run("22, "+strconv.Quote(first), func(t *testing.T) {
			_, c, err := open(t, "198.18.0.9:22")
			if err == nil {
				defer c.Close()
				_, _ = io.WriteString(c, first)
				_ = c.(*net.TCPConn).CloseWrite()
				_, err = c.Read(make([]byte, 1))
			}
			if !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("%v, want a reset", err)
			}
		})
	}
}

// TestCapturedListener connects to the captured listener itself.
func TestCapturedListener(t *testing.T) {
	g := newGate(t, "127.0.0.1:*").start()
	g.capturedDst.Store(netip.MustParseAddrPort(g.captureAddr))
	if c, err := net.Dial("tcp", g.captureAddr); err == nil {
		c.Close()
	}
	if d := g.decision(1); d.Reason != "proxy_loop_detected" || g.dials.Load() != 0 {
		t.Errorf("%+v", d)
	}
}

// TestOriginalDstWithoutRedirect checks the fall-back to the local address.
func TestOriginalDstWithoutRedirect(t *testing.T) {
	for _, addr := range []string{"127.0.0.1:0", "[::1]:0"} {
		ln, err := net.Listen("tcp", addr)
		if err != nil {
			t.Skip(err) // a machine without IPv6
		}
		defer ln.Close()
		out, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer out.Close()
		in, err := ln.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		if got, err := socket.OriginalDst(in); err != nil || got.String() != ln.Addr().String() {
			t.Errorf("%v, %v; want %v", got, err, ln.Addr())
		}
	}
}

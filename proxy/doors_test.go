package proxy

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
)

// speak is what a client says once the door let it in; it reports whether the
// origin answered.
type speak func(c net.Conn) bool

func speakTLS(sni string) speak {
	return func(c net.Conn) bool {
		t := tls.Client(c, &tls.Config{ServerName: sni, InsecureSkipVerify: true})
		return pingPong(t)
	}
}

func speakRaw(c net.Conn) bool { return pingPong(c) }

func pingPong(c net.Conn) bool {
	if _, err := io.WriteString(c, "ping\n"); err != nil {
		return false
	}
	b := make([]byte, 5)
	_, err := io.ReadFull(c, b)
	return err == nil && string(b) == "ping\n"
}

func speakHTTP(host string) speak {
	return func(c net.Conn) bool {
		fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: %s\r\n\r\n", host)
		head, err := headOf(c)
		return err == nil && strings.HasPrefix(head, "HTTP/1.1 200 ")
	}
}

// TestDoorsAgree sends one table of flows through every door that can carry
// them: verdict, reason, look-ups and connections must be the same.
func TestDoorsAgree(t *testing.T) {
	rules := []string{
		"api.example.com", "ssh.example.com:22", "raw:raw.example.com:443", "private.example.com",
		"gone.example.com", "down.example.com", "*.wild.example.com", "deny bad.wild.example.com",
		"93.184.216.0/24:5432", "93.184.216.0/24:443", "both.example.com",
	}
	tests := []struct {
		name    string
		host    string
		port    uint16
		say     speak
		reason  string // of the one decision
		lookups int64
		dials   int64
	}{
		{"TLS to a listed name", "api.example.com", 443, speakTLS("api.example.com"), "allowed", 1, 1},
		{"upper case and root dot", "API.Example.COM.", 443, speakTLS("api.example.com"), "allowed", 1, 1},
		{"upper case SNI", "api.example.com", 443, speakTLS("API.EXAMPLE.COM"), "allowed", 1, 1},
		{"another SNI", "api.example.com", 443, speakTLS("evil.example.net"), "sni_mismatch", 1, 0},
		{"another listed SNI", "api.example.com", 443, speakTLS("both.example.com"), "sni_mismatch", 1, 0},
		{"no SNI", "api.example.com", 443, speakTLS("10.0.0.1"), "sni_mismatch", 1, 0}, // crypto/tls sends none for an address
		{"not TLS on 443", "api.example.com", 443, speakRaw, "not_tls", 1, 0},
		{"HTTP on 443", "api.example.com", 443, speakHTTP("api.example.com"), "not_tls", 1, 0},
		{"raw rule", "raw.example.com", 443, speakRaw, "allowed", 1, 1},
		{"HTTP on 80", "api.example.com", 80, speakHTTP("api.example.com"), "allowed", -1, 1},
		{"HTTP on 80, another Host", "api.example.com", 80, speakHTTP("evil.example.net"), "host_mismatch", -1, 0},
		{"other port", "ssh.example.com", 22, speakRaw, "allowed", 1, 1},
		{"other port, TLS", "ssh.example.com", 22, speakTLS("ssh.example.com"), "allowed", 1, 1},
		{"unlisted", "evil.example.net", 443, speakTLS("evil.example.net"), "host_not_listed", 0, 0},
		{"unlisted, 22", "evil.example.net", 22, speakRaw, "host_not_listed", 0, 0},
		{"unlisted, 80", "evil.example.net", 80, speakHTTP("evil.example.net"), "host_not_listed", 0, 0},
		{"another port", "api.example.com", 22, speakRaw, "port_not_listed", 0, 0},
		{"subdomain of a plain name", "x.api.example.com", 443, speakTLS("x.api.example.com"), "host_not_listed", 0, 0},
		{"wildcard", "a.b.wild.example.com", 443, speakTLS("a.b.wild.example.com"), "allowed", 1, 1},
		{"deny beats allow", "bad.wild.example.com", 443, speakTLS("bad.wild.example.com"), "denied_by_rule", 0, 0},
		{"private answer", "private.example.com", 443, speakTLS("private.example.com"), "destination_ip_prohibited", 1, 0},
		{"no such name", "gone.example.com", 443, speakTLS("gone.example.com"), "destination_not_found", 1, 0},
		{"address rule", "93.184.216.34", 5432, speakRaw, "allowed", 0, 1},
		{"address rule, TLS without SNI", "93.184.216.34", 443, speakTLS("93.184.216.34"), "allowed", 0, 1},
		{"metadata", "169.254.169.254", 22, speakRaw, "destination_ip_prohibited", 0, 0},
		{"loopback", "127.0.0.1", 22, speakRaw, "destination_ip_prohibited", 0, 0},
		{"mapped loopback", "::ffff:127.0.0.1", 22, speakRaw, "destination_ip_prohibited", 0, 0},
		{"unlisted address", "1.1.1.1", 22, speakRaw, "host_not_listed", 0, 0},
	}
	tlsOrigin, plainOrigin, webOrigin := serveOrigin(t, tlsEcho), serveOrigin(t, echo), serveOrigin(t, httpOK)
	for _, door := range clients() {
		for _, tt := range tests {
			t.Run(door.name+"/"+tt.name, func(t *testing.T) {
				g := newGate(t, rules...).start()
				to := map[uint16]string{443: tlsOrigin, 22: plainOrigin, 5432: plainOrigin, 80: webOrigin}[tt.port]
				if strings.HasPrefix(tt.host, "raw.") {
					to = plainOrigin
				} else if tt.name == "other port, TLS" {
					to = tlsOrigin
				}
				for _, n := range []string{"api", "ssh", "raw", "both", "a.b.wild", "x.api", "bad.wild"} {
					g.name(n+".example.com", tt.port, to)
				}
				g.name("evil.example.net", tt.port, to)
				g.answer("private.example.com", public, mustAddr("10.1.2.3"))

				c, err := door.open(g, tt.host, tt.port)
				passed := err == nil && tt.say(c)
				d := g.decision(1)
				if d.Reason != tt.reason {
					t.Errorf("reason %q, want %q (%+v, %v)", d.Reason, tt.reason, d, err)
				}
				if want := tt.reason == "allowed"; passed != want || (d.Decision == "allowed") != want {
					t.Errorf("passed %v, decision %s, want %v (%v)", passed, d.Decision, want, err)
				}
				if got := g.lookups.Load(); got != tt.lookups && tt.lookups >= 0 {
					t.Errorf("%d look-ups, want %d", got, tt.lookups)
				} else if tt.reason == "host_not_listed" && got != 0 {
					t.Errorf("a denied name was looked up")
				}
				if got := g.dials.Load(); got != tt.dials {
					t.Errorf("%d connections to the origin, want %d", got, tt.dials)
				}
				if n := len(g.sink.all("network.connected")); n != 1 {
					t.Errorf("%d decisions, want one: %+v", n, g.sink.all("network.connected"))
				}
			})
		}
	}
}

// TestDoorsAgreeHTTP sends the same requests in absolute-form, through CONNECT
// to port 80 and through captured port 80.
func TestDoorsAgreeHTTP(t *testing.T) {
	tests := []struct {
		host    string
		reason  string
		lookups bool
		dials   int64
	}{
		{"api.example.com", "allowed", true, 1},
		{"API.example.com.", "allowed", true, 1},
		{"evil.example.net", "host_not_listed", false, 0},
		{"bad.example.com", "denied_by_rule", false, 0},
		{"private.example.com", "destination_ip_prohibited", true, 0},
		{"gone.example.com", "destination_not_found", true, 0},
		{"ssh.example.com", "port_not_listed", false, 0},
		{"169.254.169.254", "destination_ip_prohibited", false, 0},
	}
	web := serveOrigin(t, httpOK)
	doors := append(clients(), client{"absolute-form", func(g *testGate, _ string, _ uint16) (net.Conn, error) {
		return dialGate(g, g.explicitAddr), nil
	}})
	for _, door := range doors {
		for _, tt := range tests {
			t.Run(door.name+"/"+tt.host, func(t *testing.T) {
				g := newGate(t, "api.example.com", "private.example.com", "gone.example.com", "ssh.example.com:22", "deny bad.example.com").start()
				g.name("api.example.com", 80, web)
				g.answer("private.example.com", mustAddr("192.168.1.1"), public)
				c, err := door.open(g, tt.host, 80)
				passed := false
				if err == nil && door.name == "absolute-form" {
					fmt.Fprintf(c, "GET http://%s/ HTTP/1.1\r\nHost: %[1]s\r\n\r\n", tt.host)
					head, _ := headOf(c)
					passed = strings.HasPrefix(head, "HTTP/1.1 200 ")
				} else if err == nil {
					passed = speakHTTP(tt.host)(c)
				}
				d := g.decision(1)
				if d.Reason != tt.reason || passed != (tt.reason == "allowed") || len(g.sink.all("network.connected")) != 1 {
					t.Errorf("passed %v, %v: %+v", passed, err, g.sink.all("network.connected"))
				}
				if (g.lookups.Load() > 0) != tt.lookups || g.dials.Load() != tt.dials {
					t.Errorf("%d look-ups, %d connections", g.lookups.Load(), g.dials.Load())
				}
			})
		}
	}
}

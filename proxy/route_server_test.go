package proxy

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"egressd/policy"
)

// TestRouteCaptured judges captured connections, which have no credentials, by
// their address.
func TestRouteCaptured(t *testing.T) {
	m := newManyGates(t)
	for _, tt := range []struct {
		port   uint16
		answer string
	}{
		{22, ""},
		{80, "HTTP/1.1 403 "},
		{443, string(accessDenied[:])},
	} {
		m.front.capturedDst.Store(netip.AddrPortFrom(mustAddr("198.18.0.7"), tt.port))
		var answer []byte
		if c, err := net.Dial("tcp", m.front.captureAddr); err == nil { // else a reset that came before connect had returned
			_, _ = c.Write(helloBytes(t, "a.example"))
			_ = c.SetReadDeadline(time.Now().Add(patience))
			answer, _ = io.ReadAll(c)
			c.Close()
		}
		if tt.answer == "" && len(answer) > 0 || !strings.HasPrefix(string(answer), tt.answer) || strings.Contains(string(answer), "Proxy-Authenticate") {
			t.Errorf("port %d: %q", tt.port, answer)
		}
	}
	for i := 1; i <= 3; i++ {
		if e := m.front.decision(i); e.Reason != "not_authenticated" || e.Addr == "" {
			t.Errorf("%+v", e)
		}
	}
	m.setByAddr(m.b.Server)
	m.b.pin(mustAddr("198.18.0.8"), hostOf(t, "b.example")) // its own synthetic names
	m.front.capturedDst.Store(netip.AddrPortFrom(mustAddr("198.18.0.8"), 22))
	if c := dialGate(m.front, m.front.captureAddr); !pingPong(c) {
		t.Error("a captured connection from a known address is refused")
	}
	if e := m.b.decision(1); e.Reason != "allowed" || e.Host != "b.example" {
		t.Errorf("%+v", e)
	}
}

// TestRunEnds ends a tenant while its connections are open: they end, others
// live, and its token leads nowhere.
func TestRunEnds(t *testing.T) {
	m := newManyGates(t)
	stop := m.a.run() // a second Run of the same Server; the first is stopped below
	open := func(host, token string) net.Conn {
		c := dialGate(m.front, m.front.explicitAddr)
		fmt.Fprintf(c, "CONNECT %s:22 HTTP/1.1\r\n%s\r\n", host, authField(token))
		if _, err := headOf(c); err != nil || !pingPong(c) {
			t.Fatal(err)
		}
		return c
	}
	mine, other := open("a.example", tokenA), open("b.example", tokenB)
	stop()
	if !pingPong(mine) {
		t.Fatal("a connection ended although its Server still runs")
	}
	if n := m.a.Stats().Connections; n != 1 {
		t.Errorf("%d connections", n)
	}
	m.stopA()
	if n := m.a.Stats().Connections; n != 0 {
		t.Errorf("%d connections are left behind Run", n)
	}
	if _, err := mine.Read(make([]byte, 1)); err == nil {
		t.Error("the connection goes on")
	}
	if e := m.a.event("network.closed", 1); e.Error != stopped {
		t.Errorf("%+v", e)
	}
	if !pingPong(other) {
		t.Error("another tenant's connection ended")
	}
	if err := withToken[0].open(m.front, "a.example", tokenA); err == nil || !strings.HasPrefix(err.Error(), "HTTP/1.1 403") {
		t.Errorf("a Server that does not run: %v", err)
	}
	if e := m.front.decision(1); e.Reason != "no_policy" {
		t.Errorf("%+v", e)
	}
}

// TestRoutedLimits holds a tenant to its own limits, and everybody to the
// listener's.
func TestRoutedLimits(t *testing.T) {
	m := newManyGates(t)
	m.a.limit(policy.Limits{Connections: 1}, "a.example:22")
	m.front.limit(policy.Limits{Connections: 2})
	keep := func(host, token string) net.Conn {
		c := dialGate(m.front, m.front.explicitAddr)
		fmt.Fprintf(c, "CONNECT %s:22 HTTP/1.1\r\n%s\r\n", host, authField(token))
		if _, err := headOf(c); err != nil || !pingPong(c) {
			t.Fatal(err)
		}
		return c
	}
	keep("a.example", tokenA)
	if err := withToken[0].open(m.front, "a.example", tokenA); err == nil || !strings.HasPrefix(err.Error(), "HTTP/1.1 503") {
		t.Errorf("over the tenant's limit: %v", err)
	}
	if e := m.a.decision(2); e.Reason != "connection_limit_reached" || !strings.Contains(e.Error, "connections: 1") {
		t.Errorf("%+v", e)
	}
	settle(t, "connections", 1, func() int { return m.a.Stats().Connections })
	keep("b.example", tokenB)
	if err := withToken[0].open(m.front, "b.example", tokenB); err == nil || !strings.HasPrefix(err.Error(), "HTTP/1.1 503") {
		t.Errorf("over the listener's limit: %v", err)
	}
}

// TestRoutedLoop asks a tenant for the listener it came in by.
func TestRoutedLoop(t *testing.T) {
	m := newManyGates(t)
	own := netip.MustParseAddrPort(m.front.explicitAddr)
	m.a.setPolicy("127.0.0.1:" + itoa(own.Port()))
	c := dialGate(m.front, m.front.explicitAddr)
	fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\n%s\r\n", own, authField(tokenA))
	if head, _ := headOf(c); !strings.HasPrefix(head, "HTTP/1.1 403 ") {
		t.Errorf("%q", head)
	}
	if e := m.a.decision(1); e.Reason != "proxy_loop_detected" {
		t.Errorf("%+v", e)
	}
}

package proxy

import (
	"context"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"egressd/event/eventtest"
	"egressd/policy"
)

// TestZeroServerDenies checks that nothing passes a Server nobody set up.
func TestZeroServerDenies(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	ln := listenLocal(t)
	s := new(Server)
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, ln) }()
	c, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, _ = io.WriteString(c, "CONNECT a.example:443 HTTP/1.1\r\n\r\n")
	if head, _ := headOf(c); !strings.HasPrefix(head, "HTTP/1.1 403 ") {
		t.Errorf("%q", head)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestNotRecordedNotPassed fills the event sink: no byte may reach the origin.
func TestNotRecordedNotPassed(t *testing.T) {
	tests := []struct {
		rule string
		port uint16
		say  speak
	}{
		{"a.example", 443, speakTLS("a.example")},
		{"a.example:22", 22, speakRaw},
		{"raw:a.example:22", 22, speakRaw},
	}
	for _, tt := range tests {
		for _, door := range clients() {
			var arrived atomic.Int64
			g := newGate(t, tt.rule).start()
			g.sink.fill()
			g.name("a.example", tt.port, serveOrigin(t, func(c net.Conn) {
				n, _ := c.Read(make([]byte, 1))
				arrived.Add(int64(n))
			}))
			if c, err := door.open(g, "a.example", tt.port); err == nil && tt.say(c) {
				t.Errorf("%s, %s: passed without a record", tt.rule, door.name)
			}
			if arrived.Load() != 0 {
				t.Errorf("%s, %s: the origin got bytes", tt.rule, door.name)
			}
		}
	}
}

// TestOwnListeners asks the gate to connect to itself.
func TestOwnListeners(t *testing.T) {
	g := newGate(t, "127.0.0.1:*", "self.example:*").start()
	g.Own = []netip.AddrPort{netip.MustParseAddrPort("192.0.2.7:9999")}
	g.answer("self.example", mustAddr("127.0.0.1"))
	own := netip.MustParseAddrPort(g.explicitAddr)
	for _, to := range []struct {
		host string
		port uint16
	}{
		{"127.0.0.1", own.Port()},
		{"::ffff:127.0.0.1", own.Port()},
		{"0.0.0.0", own.Port()},
		{"self.example", own.Port()},
		{"192.0.2.7", 9999},
		{"127.0.0.1", netip.MustParseAddrPort(g.captureAddr).Port()},
	} {
		if _, err := openSocks5(g, to.host, to.port); err == nil || err.Error() != "reply 2" {
			t.Errorf("%v: %v", to, err)
		}
	}
	for _, d := range g.sink.all("network.connected") {
		if d.Reason != "proxy_loop_detected" {
			t.Errorf("%+v", d)
		}
	}
	if g.dials.Load() != 0 {
		t.Error("dialled itself")
	}
}

// TestRejudge changes the policy under open tunnels.
func TestRejudge(t *testing.T) {
	g := newGate(t, "a.example:22", "b.example:22", "c.example").start()
	tcp, secure := serveOrigin(t, echo), serveOrigin(t, tlsEcho)
	g.name("a.example", 22, tcp)
	g.name("b.example", 22, tcp)
	g.name("c.example", 443, secure)
	conns := map[string]net.Conn{}
	for _, n := range []string{"a.example", "b.example"} {
		c, err := openConnect(g, n, 22)
		if err != nil || !pingPong(c) {
			t.Fatal(n, err)
		}
		conns[n] = c
	}
	c, err := openConnect(g, "c.example", 443)
	if err != nil || !speakTLS("c.example")(c) {
		t.Fatal(err)
	}
	if n := g.Rejudge(); n != 0 {
		t.Errorf("closed %d under an unchanged policy", n)
	}
	g.setPolicy("a.example:22")
	if n := g.Rejudge(); n != 2 {
		t.Errorf("closed %d flows, want 2", n)
	}
	if !pingPong(conns["a.example"]) {
		t.Error("the flow that is still allowed was closed")
	}
	if pingPong(conns["b.example"]) {
		t.Error("the flow that is denied now goes on")
	}
	g.event("network.closed", 2)
	for _, e := range g.sink.all("network.closed") {
		if !strings.Contains(e.Error, "host_not_listed") {
			t.Errorf("%+v", e)
		}
	}
}

// TestAsk lets a person decide about what no rule covers, and only that.
func TestAsk(t *testing.T) {
	var asked atomic.Int64
	g := newGate(t, "a.example", "deny bad.example", "deny 9.9.9.0/24")
	g.Ask = func(_ context.Context, r policy.Request, _ policy.Decision) bool {
		asked.Add(1)
		return r.Host.String() != "no.example"
	}
	g.start()
	secure := serveOrigin(t, tlsEcho)
	for _, n := range []string{"yes.example", "no.example", "bad.example", "inner.example"} {
		g.name(n, 443, secure)
	}
	g.answer("inner.example", mustAddr("10.0.0.1"))
	g.answer("nine.example", mustAddr("9.9.9.9"))
	tests := []struct {
		host, sni, reason string
		asked             int64
	}{
		{"yes.example", "yes.example", "allowed", 1},
		{"yes.example", "other.example", "sni_mismatch", 1},
		{"no.example", "no.example", "not_approved", 1},
		{"bad.example", "bad.example", "denied_by_rule", 0},
		{"inner.example", "inner.example", "destination_ip_prohibited", 1},
		{"nine.example", "nine.example", "denied_by_rule", 1}, // a yes lifts no deny rule
	}
	for i, tt := range tests {
		asked.Store(0)
		c, err := openConnect(g, tt.host, 443)
		passed := err == nil && speakTLS(tt.sni)(c)
		if d := g.decision(i + 1); d.Reason != tt.reason || passed != (tt.reason == "allowed") || asked.Load() != tt.asked {
			t.Errorf("%+v: passed %v, asked %d, %+v, %v", tt, passed, asked.Load(), d, err)
		}
	}
}

// TestAudit lets everything pass and says what would have been denied.
func TestAudit(t *testing.T) {
	g := newGate(t, "a.example", "audit").start()
	secure, plain := serveOrigin(t, tlsEcho), serveOrigin(t, echo)
	g.name("a.example", 443, secure)
	g.name("evil.example", 443, secure)
	g.name("evil.example", 22, plain)
	tests := []struct {
		host, sni string
		reason    string
		audit     bool
	}{
		{"a.example", "a.example", "allowed", false},
		{"a.example", "evil.example", "sni_mismatch", true},
		{"evil.example", "evil.example", "host_not_listed", true},
	}
	for i, tt := range tests {
		c, err := openConnect(g, tt.host, 443)
		if err != nil || !speakTLS(tt.sni)(c) {
			t.Errorf("%+v did not pass: %v", tt, err)
		}
		if d := g.decision(i + 1); d.Reason != tt.reason || d.Audit != tt.audit || d.Decision != "allowed" {
			t.Errorf("%+v: %+v", tt, d)
		}
	}
	g.capturedDst.Store(netip.MustParseAddrPort("8.8.8.8:443"))
	if c, err := net.Dial("tcp", g.captureAddr); err != nil || !speakTLS("evil.example")(c) {
		t.Error("a captured literal did not pass", err)
	}
	if d := g.decision(4); d.Host != "evil.example" || !d.Audit {
		t.Errorf("a captured literal is audited as %+v, want its name", d)
	}
}

// TestShutdown ends Serve with tunnels open and clients half way through.
func TestShutdown(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	g := newGate(t, "a.example:22", "b.example")
	g.name("a.example", 22, serveOrigin(t, echo))
	g.name("b.example", 443, "")
	ending, end := make(chan bool, 1), make(chan bool)
	g.sink.hook = func(e eventtest.Line) {
		if e.Type == "network.closed" {
			ending <- true
			<-end
		}
	}
	ln := listenLocal(t)
	g.explicitAddr = ln.Addr().String()
	done := make(chan error, 1)
	go func() { done <- g.Serve(ctx, ln) }()
	open, err := openConnect(g, "a.example", 22)
	if err != nil || !pingPong(open) {
		t.Fatal(err)
	}
	if _, err := openConnect(g, "b.example", 443); err != nil { // waits for a ClientHello
		t.Fatal(err)
	}
	_, _ = io.WriteString(dialGate(g, g.explicitAddr), "CONNECT a.exa")
	cancel()
	<-ending
	select {
	case <-done:
		t.Error("Serve returned while a flow was still being recorded")
	case <-time.After(20 * time.Millisecond):
	}
	close(end)
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(5 * time.Second):
		t.Fatal("Serve goes on")
	}
	if len(g.sink.all("network.closed")) != 1 {
		t.Error("the end of the open flow was not recorded before Serve returned")
	}
	if g.Rejudge() != 0 || len(g.open.All()) != 0 {
		t.Error("flows are still registered")
	}
}

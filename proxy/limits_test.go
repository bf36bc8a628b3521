package proxy

import (
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"egressd/policy"
)

// limit puts a policy with limits in force.
func (g *testGate) limit(l policy.Limits, rules ...string) {
	doc := policy.Document{Limits: l}
	for _, r := range rules {
		doc.Allow = append(doc.Allow, policy.Entry{Text: r})
	}
	p, err := policy.Compile(&doc)
	if err != nil {
		g.t.Fatal(err)
	}
	g.Policy.Store(p)
}

// TestTooManyConnections opens one more than allowed, through each door.
func TestTooManyConnections(t *testing.T) {
	for _, l := range []policy.Limits{{Connections: 1}, {ConnectionsPerClient: 1}} {
		g := newGate(t)
		g.limit(l, "a.example:22")
		g.start()
		g.name("a.example", 22, serveOrigin(t, echo))
		first, err := openConnect(g, "a.example", 22)
		if err != nil || !pingPong(first) {
			t.Fatal(err)
		}
		for _, tt := range []struct {
			open func(*testGate, string, uint16) (net.Conn, error)
			want string
		}{
			{openConnect, "HTTP/1.1 503"},
			{openSocks5, "reply 1"},
			{openSocks4, "reply 91"},
			{openAbsolute, "HTTP/1.1 503"},
		} {
			if _, err := tt.open(g, "a.example", 22); err == nil || !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("%+v: %v, want %s", l, err, tt.want)
			}
		}
		if d := g.decision(2); d.Reason != "connection_limit_reached" {
			t.Errorf("%+v", d)
		}
		first.Close()
		settle(t, "admitted connections", 0, func() int {
			g.admitted.mu.Lock()
			defer g.admitted.mu.Unlock()
			return g.admitted.total + g.admitted.refusing + len(g.admitted.clients)
		})
		if c, err := openConnect(g, "a.example", 22); err != nil || !pingPong(c) {
			t.Errorf("refused when there is room again: %v", err)
		}
	}
}

func openAbsolute(g *testGate, host string, _ uint16) (net.Conn, error) {
	c := dialGate(g, g.explicitAddr)
	_, _ = io.WriteString(c, "GET http://"+host+"/ HTTP/1.1\r\nHost: "+host+"\r\n\r\n")
	head, err := headOf(c)
	if err != nil {
		return nil, err
	}
	return nil, refused{head}
}

func TestRate(t *testing.T) {
	var a admission
	b := bounds{connections: 100, perClient: 100, rate: 2, ratePerClient: 2}
	now := time.Unix(0, 0)
	v := &visit{client: netip.MustParseAddrPort("192.0.2.1:1")}
	for i, want := range []bool{false, false, true} {
		if over := a.enter(new(seat), v, b, now); (over != "") != want {
			t.Errorf("connection %d: %q", i, over)
		}
	}
	if over := a.enter(new(seat), v, b, now.Add(500*time.Millisecond)); over != "" {
		t.Error("no token after half a second at 2 a second")
	}
}

// TestBytesPerFlow ends a flow that carries too much.
func TestBytesPerFlow(t *testing.T) {
	g := newGate(t)
	g.limit(policy.Limits{BytesPerFlow: 1000}, "a.example:22")
	g.start()
	g.name("a.example", 22, serveOrigin(t, echo))
	c, err := openConnect(g, "a.example", 22)
	if err != nil || !pingPong(c) {
		t.Fatal(err)
	}
	_, _ = c.Write(make([]byte, 2000))
	if n, _ := io.Copy(io.Discard, c); n > 1000 {
		t.Errorf("%d bytes came back", n)
	}
	if e := g.event("network.closed", 1); !strings.Contains(e.Error, "more bytes") {
		t.Errorf("%+v", e)
	}
}

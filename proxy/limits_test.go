package proxy

import (
	"io"
	"net"
	"strings"
	"testing"

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
			n := g.admitted.Counts()
			return n.Connections + n.Refusals + n.Clients
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

package proxy

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"egressd/event"
	"egressd/event/eventtest"
	"egressd/policy"
	"egressd/proxy/internal/dial"
	"egressd/proxy/internal/drops"
)

// logBuffer keeps what is logged.
type logBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// panicky panics where a test says.
type panicky struct {
	*testGate
	at string
}

func (p *panicky) Lookup(ctx context.Context, name policy.Host) ([]netip.Addr, error) {
	if p.at == "look-up" && name.Name() == "bad.example" {
		panic("the resolver has a bug")
	}
	return p.testGate.Lookup(ctx, name)
}

// TestPanicEndsOneConnection has a bug in each goroutine that works for a
// connection: the others live, the bug is in the log with its stack and in the
// events.
func TestPanicEndsOneConnection(t *testing.T) {
	connect := "CONNECT bad.example:22 HTTP/1.1\r\n\r\n"
	web := "GET http://bad.example/ HTTP/1.1\r\nHost: bad.example\r\n\r\n"
	for _, tt := range []struct{ name, at, request string }{
		{"the connection's own goroutine", "look-up", connect},
		{"one of several dials", "dial", connect},
		{"an HTTP exchange", "sink", "GET http://denied.example/ HTTP/1.1\r\nHost: denied.example\r\n\r\n"},
		{"the look-up of the transport", "look-up", web},
		{"the transport's goroutine", "dial", web},
		{"the origin's direction", "sink", "CONNECT bad.example:23 HTTP/1.1\r\n\r\n"},
		{"the client's direction", "sink", "CONNECT bad.example:22 HTTP/1.1\r\n\r\nping\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := newGate(t, "a.example:22", "bad.example:22", "bad.example:23", "bad.example")
			p := &panicky{g, tt.at}
			var log logBuffer
			g.Resolver, g.Log = p, slog.New(slog.NewTextHandler(&log, nil))
			g.name("a.example", 22, serveOrigin(t, echo))
			g.answer("bad.example", mustAddr("93.184.216.35"), mustAddr("93.184.216.36"))
			for _, addr := range []string{"93.184.216.35", "93.184.216.36"} {
				g.leads(addr+":22", serveOrigin(t, echo))
				g.leads(addr+":23", serveOrigin(t, func(c net.Conn) {
					_, _ = io.WriteString(c, "hello")
					silent(c)
				}))
			}
			dial := g.dialFunc
			g.dialFunc = func(ctx context.Context, d *net.Dialer, network, address string) (net.Conn, error) {
				if tt.at == "dial" && strings.HasPrefix(address, "93.184.216.35:") {
					panic("the dialler has a bug")
				}
				if tt.at == "dial" && strings.HasPrefix(address, "93.184.216.36:") {
					<-ctx.Done() // so that the other attempt is the one that counts
				}
				return dial(ctx, d, network, address)
			}
			g.sink.hook = func(e eventtest.Line) {
				if tt.at == "sink" && (e.Decision == "allowed" && e.Host == "bad.example" || e.Host == "denied.example") {
					panic("the sink has a bug")
				}
			}
			g.start()
			other, err := openConnect(g, "a.example", 22)
			if err != nil || !pingPong(other) {
				t.Fatal(err)
			}
			c := dialGate(g, g.explicitAddr)
			_, _ = io.WriteString(c, tt.request)
			_, _ = io.Copy(io.Discard, c) // it ends
			if !pingPong(other) {
				t.Error("another connection ended")
			}
			settleUp(t, "events about the bug", 1, func() int {
				n := 0
				for _, e := range g.sink.all("network.connected") {
					if e.Reason == "proxy_internal_error" && e.Error == bugDetail && e.Client != "" {
						n++
					}
				}
				return n
			})
			if text := log.String(); !strings.Contains(text, "has a bug") || !strings.Contains(text, "survive_test.go") {
				t.Errorf("the log has no stack: %s", text)
			}
			again, err := openConnect(g, "a.example", 22)
			if err != nil || !pingPong(again) {
				t.Errorf("a new connection: %v", err)
			}
			other.Close()
			again.Close()
			settle(t, "flows", 0, func() int { return g.Stats().Flows })
			settle(t, "connections", 0, func() int { return g.Stats().Connections })
			settle(t, "places", 0, g.seats)
		})
	}
}

// TestPanicBeforeRelay has a bug between the dial and the first byte, where a
// policy that has changed meanwhile is asked again: the tunnel ends, and is
// waited for no longer.
func TestPanicBeforeRelay(t *testing.T) {
	g := newGate(t, "raw:bad.example:22")
	client, gate := net.Pipe()
	up, origin := net.Pipe()
	defer client.Close()
	defer origin.Close()
	f := newFlow(context.Background(), newConn(g.Server, gate, event.DoorHTTP), event.DoorConnect)
	f.under = nil                        // judged by no policy: there is a new one
	f.c.front, f.c.judge = nil, g.Server // the bug: the check panics
	newTunnel(f, dial.Result{Conn: up}, false).carryAndWait()
	for _, c := range []net.Conn{client, origin} {
		if _, err := c.Read(make([]byte, 1)); err == nil {
			t.Error("a side is still open")
		}
	}
	if n := g.open.Len(); n != 0 {
		t.Errorf("%d flows are on the list", n)
	}
}

// TestPanicOfTheSweeper has a bug in what a Server does each second: the next
// second comes all the same.
func TestPanicOfTheSweeper(t *testing.T) {
	g := newGate(t)
	var log logBuffer
	g.Log = slog.New(slog.NewTextHandler(&log, nil))
	g.sink.hook = func(eventtest.Line) { panic("the sink has a bug") }
	g.drops.Add(event.DoorHTTP, drops.Full)
	g.tidy()
	if text := log.String(); !strings.Contains(text, "the sink has a bug") || !strings.Contains(text, "a bug was not recorded") {
		t.Error(text)
	}
	g.sink.hook = nil
	g.drops.Add(event.DoorHTTP, drops.Full)
	g.tidy()
	if e := g.decision(1); e.Error != "1 connections "+drops.Full {
		t.Errorf("%+v", e)
	}
}

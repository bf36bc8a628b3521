package proxy

import (
	"errors"
	"io"
	"strings"
	"testing"

	"egressd/event"
)

// brokenSink knows that it cannot record.
type brokenSink struct{ memSink }

func (*brokenSink) Unavailable() error { return errors.New("no space") }

// While nothing can be recorded, a client hears so before it is told to go on, at every
// door and port, and nothing is looked up or dialled for it. What the rules deny is
// denied as ever.
func TestNothingCanBeRecorded(t *testing.T) {
	for _, door := range clients() {
		for _, port := range []uint16{22, 80, 443} {
			g := newGate(t, "a.example:22,80,443")
			var sink brokenSink
			g.Events = &sink
			g.sink = &sink.memSink
			g.start()
			g.name("a.example", port, serveOrigin(t, echo))
			c, err := door.open(g, "a.example", port)
			if err == nil && door.name != "transparent" {
				t.Errorf("%s to port %d was told to go on", door.name, port)
			}
			if err != nil && door.name == "connect" && !strings.HasPrefix(err.Error(), "HTTP/1.1 503") {
				t.Errorf("port %d: %v", port, err)
			}
			switch {
			case door.name != "transparent":
			case port == 80: // each request is answered
				_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n")
			case port == 443: // by an alert
				if handshake(c, "a.example") == nil {
					t.Error("TLS through a captured connection")
				}
			}
			if d := g.decision(1); d.Reason != "record_unavailable" || d.Decision != "blocked" || d.Rule != "" {
				t.Errorf("%s to port %d: %+v", door.name, port, d)
			}
			if n := g.lookups.Load() + g.dials.Load(); n != 0 {
				t.Errorf("%s to port %d: %d look-ups and connections", door.name, port, n)
			}
			if c != nil {
				c.Close()
			}
		}
	}
	g := newGate(t, "a.example", "93.184.216.34:22")
	g.Events = event.Fanout{new(brokenSink), g.sink}
	g.start()
	if _, err := openConnect(g, "b.example", 443); err == nil || !strings.HasPrefix(err.Error(), "HTTP/1.1 403") {
		t.Errorf("what no rule allows: %v", err)
	}
	if _, err := openCaptured(g, "93.184.216.34", 22); err != nil {
		t.Log(err) // refused before connect had returned
	}
	if d := g.decision(2); d.Reason != "record_unavailable" || g.dials.Load() != 0 {
		t.Errorf("a captured address: %+v, %d dials", d, g.dials.Load())
	}
}

// A request is answered 503, with words that say whose turn it is.
func TestRequestCannotBeRecorded(t *testing.T) {
	g := newGate(t, "a.example:80")
	g.Events = &brokenSink{}
	g.start()
	_, err := openAbsolute(g, "a.example", 80)
	if err == nil || !strings.HasPrefix(err.Error(), "HTTP/1.1 503") || g.lookups.Load()+g.dials.Load() != 0 {
		t.Errorf("%v, %d dials", err, g.dials.Load())
	}
}

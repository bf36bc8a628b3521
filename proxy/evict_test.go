package proxy

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"egressd/event"
	"egressd/policy"
	"egressd/proxy/internal/admission"
	"egressd/proxy/internal/peek"
)

// TestEvictedStaysEvicted: a connection that must make room ends, whatever its
// own goroutine is about to do.
func TestEvictedStaysEvicted(t *testing.T) {
	g := newGate(t, "a.example:22")
	ours, theirs := net.Pipe()
	defer ours.Close()
	c := newConn(g.Server, theirs, event.DoorHTTP)
	now := time.Unix(1000, 0)
	b := admission.Limits{Connections: 1, PerClient: 1, Rate: 1e9, RatePerClient: 1e9}
	if over := g.admitted.Enter(&c.places[0], c, b, now); over != "" {
		t.Fatal(over)
	}
	if n := g.admitted.EvictSome(1, now.Add(admission.PatienceFull)); n != 1 {
		t.Fatalf("%d evicted", n)
	}
	for _, set := range []func(time.Time) error{c.SetDeadline, c.SetReadDeadline} {
		start := time.Now()
		if err := set(start.Add(patience)); err != nil {
			t.Fatal(err)
		}
		if err := c.More(peek.BufferBytes); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(start) > patience/2 {
			t.Errorf("the deadline was put off: %v", err)
		}
	}
	// What it wanted came in the same moment: it is told, and does not pass.
	f := newConnectFlow(context.Background(), c)
	f.req = policy.Request{Host: hostOf(t, "a.example"), Port: 22}
	go func() { _, _ = io.Copy(io.Discard, ours) }()
	if f.run() != nil {
		t.Error("a tunnel is open")
	}
	if e := g.decision(1); e.Reason != "connection_limit_reached" || e.Error != evictedDetail || g.lookups.Load() != 0 {
		t.Errorf("%+v, %d look-ups", e, g.lookups.Load())
	}
}

package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"egressd/policy"
)

// TestRatePerClient holds one client to its rate and forgets it in time.
func TestRatePerClient(t *testing.T) {
	var a admission
	b := bounds{connections: 1000, perClient: 1000, rate: 100, ratePerClient: 2}
	now := time.Unix(1000, 0)
	visitor := func(last byte) *visit {
		return &visit{client: netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, last}), 1)}
	}
	var seats []*seat
	enter := func(last byte, at time.Time) string {
		st := new(seat)
		over := a.enter(st, visitor(last), b, at)
		if over == "" {
			seats = append(seats, st)
		}
		return over
	}
	for i, want := range []string{"", "", "rate_per_client: 2"} {
		if over := enter(1, now); want == "" && over != "" || !strings.Contains(over, want) {
			t.Errorf("connection %d: %q", i, over)
		}
	}
	if over := enter(2, now); over != "" {
		t.Errorf("another client: %q", over)
	}
	// A clock that jumps back gives nothing, and takes nothing that is to come.
	if over := enter(1, now.Add(-time.Hour)); over == "" {
		t.Error("a clock that went back gave a token")
	}
	if over := enter(1, now.Add(-time.Hour+time.Second)); over != "" {
		t.Errorf("a second later: %q", over)
	}
	for _, st := range seats {
		st.leave()
	}
	a.tidy(b, now)
	if len(a.clients) != 0 {
		a.tidy(b, now.Add(2*time.Second))
	}
	if len(a.clients) != 0 || a.total != 0 || a.waiting.Len() != 0 {
		t.Errorf("%d clients, %d connections, %d waiting are left", len(a.clients), a.total, a.waiting.Len())
	}
}

// TestClientsAreBounded remembers no more clients than it may.
func TestClientsAreBounded(t *testing.T) {
	var a admission
	b := bounds{connections: 1 << 20, perClient: 1, rate: 1e9, ratePerClient: 1e-6}
	now := time.Unix(1000, 0)
	for i := range clientsMax + 1000 {
		st := new(seat)
		addr := netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
		if over := a.enter(st, &visit{client: netip.AddrPortFrom(addr, 1)}, b, now); over != "" {
			t.Fatal(over)
		}
		st.leave()
	}
	if len(a.clients) > clientsMax {
		t.Errorf("%d clients are remembered", len(a.clients))
	}
}

// TestEvictedSeats takes places away in every order and counts what is left.
func TestEvictedSeats(t *testing.T) {
	ours, theirs := net.Pipe()
	defer ours.Close()
	var a admission
	b := bounds{connections: 2, perClient: 2, rate: 1e9, ratePerClient: 1e9}
	now := time.Unix(1000, 0)
	seats := make([]seat, 6)
	for i := range seats {
		v := &visit{conn: theirs, client: netip.MustParseAddrPort(fmt.Sprintf("192.0.2.%d:1", i%2))}
		if over := a.enter(&seats[i], v, b, now); over != "" {
			t.Fatal(over)
		}
		now = now.Add(patienceFull)
	}
	for i := range seats {
		if got, want := seats[i].busy(), i >= 4; got != want {
			t.Errorf("seat %d: kept %v", i, got)
		}
	}
	if a.total != 2 || a.waiting.Len() != 0 {
		t.Errorf("%d connections, %d waiting", a.total, a.waiting.Len())
	}
	for i := range seats {
		seats[i].leave()
		seats[i].leave()
	}
	if a.total != 0 || len(a.clients) != 0 {
		t.Errorf("%d connections, %d clients are left", a.total, len(a.clients))
	}
}

// TestEvictedByItself lets a client's own newcomer have its only place.
func TestEvictedByItself(t *testing.T) {
	ours, theirs := net.Pipe()
	defer ours.Close()
	var a admission
	b := bounds{connections: 10, perClient: 1, rate: 1e9, ratePerClient: 1e9}
	now := time.Unix(1000, 0)
	v := &visit{conn: theirs, client: netip.MustParseAddrPort("192.0.2.1:1")}
	seats := make([]seat, 3)
	for i := range 2 {
		if over := a.enter(&seats[i], v, b, now); over != "" {
			t.Fatal(over)
		}
		now = now.Add(patienceFull)
	}
	seats[1].busy()
	if over := a.enter(&seats[2], v, b, now); !strings.Contains(over, "connections_per_client: 1") {
		t.Errorf("a second connection beside one in use: %q", over)
	}
}

// TestEvictedStaysEvicted: a connection that must make room ends, whatever its
// own goroutine is about to do.
func TestEvictedStaysEvicted(t *testing.T) {
	g := newGate(t, "a.example:22")
	ours, theirs := net.Pipe()
	defer ours.Close()
	v := &visit{front: g.Server, conn: theirs, judge: g.Server, cancel: func() {}}
	c := &conn{Conn: theirs, v: v, pool: &g.heads}
	now := time.Unix(1000, 0)
	b := bounds{connections: 1, perClient: 1, rate: 1e9, ratePerClient: 1e9}
	if over := g.admitted.enter(&v.seats[0], v, b, now); over != "" {
		t.Fatal(over)
	}
	if n := g.admitted.evictSome(1, now.Add(patienceFull)); n != 1 {
		t.Fatalf("%d evicted", n)
	}
	for _, set := range []func(time.Time) error{c.SetDeadline, c.SetReadDeadline} {
		start := time.Now()
		if err := set(start.Add(patience)); err != nil {
			t.Fatal(err)
		}
		if err := c.more(pooledBytes); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(start) > patience/2 {
			t.Errorf("the deadline was put off: %v", err)
		}
	}
	// What it wanted came in the same moment: it is told, and does not pass.
	ctx := context.WithValue(context.Background(), visitKey{}, v)
	f := g.newConnectFlow(ctx, c)
	f.req = policy.Request{Host: hostOf(t, "a.example"), Port: 22}
	go func() { _, _ = io.Copy(io.Discard, ours) }()
	f.run()
	if e := g.decision(1); e.Reason != "connection_limit_reached" || e.Error != evictedDetail || g.lookups.Load() != 0 {
		t.Errorf("%+v, %d look-ups", e, g.lookups.Load())
	}
}

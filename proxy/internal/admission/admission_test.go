package admission

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"
)

// client is a Client that does nothing when it loses its place.
type client netip.Addr

func (c client) Addr() netip.Addr { return netip.Addr(c) }
func (client) Evict()             {}

func from(addr string) client { return client(netip.MustParseAddr(addr)) }

// TestRatePerClient holds one client to its rate and forgets it in time.
func TestRatePerClient(t *testing.T) {
	var g Gate
	b := Limits{Connections: 1000, PerClient: 1000, Rate: 100, RatePerClient: 2}
	now := time.Unix(1000, 0)
	visitor := func(last byte) client {
		return client(netip.AddrFrom4([4]byte{192, 0, 2, last}))
	}
	var places []*Place
	enter := func(last byte, at time.Time) string {
		st := new(Place)
		over := g.Enter(st, visitor(last), b, at)
		if over == "" {
			places = append(places, st)
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
	for _, st := range places {
		st.Leave()
	}
	g.Tidy(b, now)
	if len(g.clients) != 0 {
		g.Tidy(b, now.Add(2*time.Second))
	}
	if len(g.clients) != 0 || g.total != 0 || g.waiting.Len() != 0 {
		t.Errorf("%d clients, %d connections, %d waiting are left", len(g.clients), g.total, g.waiting.Len())
	}
}

// TestClientsAreBounded remembers no more clients than it may.
func TestClientsAreBounded(t *testing.T) {
	var g Gate
	b := Limits{Connections: 1 << 20, PerClient: 1, Rate: 1e9, RatePerClient: 1e-6}
	now := time.Unix(1000, 0)
	for i := range clientsMax + 1000 {
		st := new(Place)
		addr := netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
		if over := g.Enter(st, client(addr), b, now); over != "" {
			t.Fatal(over)
		}
		st.Leave()
	}
	if len(g.clients) > clientsMax {
		t.Errorf("%d clients are remembered", len(g.clients))
	}
}

// TestEvictedPlaces takes places away in every order and counts what is left.
func TestEvictedPlaces(t *testing.T) {
	var g Gate
	b := Limits{Connections: 2, PerClient: 2, Rate: 1e9, RatePerClient: 1e9}
	now := time.Unix(1000, 0)
	places := make([]Place, 6)
	for i := range places {
		c := from(fmt.Sprintf("192.0.2.%d", i%2))
		if over := g.Enter(&places[i], c, b, now); over != "" {
			t.Fatal(over)
		}
		now = now.Add(PatienceFull)
	}
	for i := range places {
		if got, want := places[i].Busy(), i >= 4; got != want {
			t.Errorf("place %d: kept %v", i, got)
		}
	}
	if g.total != 2 || g.waiting.Len() != 0 {
		t.Errorf("%d connections, %d waiting", g.total, g.waiting.Len())
	}
	for i := range places {
		places[i].Leave()
		places[i].Leave()
	}
	if g.total != 0 || len(g.clients) != 0 {
		t.Errorf("%d connections, %d clients are left", g.total, len(g.clients))
	}
}

// TestEvictedByItself lets a client's own newcomer have its only place.
func TestEvictedByItself(t *testing.T) {
	var g Gate
	b := Limits{Connections: 10, PerClient: 1, Rate: 1e9, RatePerClient: 1e9}
	now := time.Unix(1000, 0)
	c := from("192.0.2.1")
	places := make([]Place, 3)
	for i := range 2 {
		if over := g.Enter(&places[i], c, b, now); over != "" {
			t.Fatal(over)
		}
		now = now.Add(PatienceFull)
	}
	places[1].Busy()
	if over := g.Enter(&places[2], c, b, now); !strings.Contains(over, "connections_per_client: 1") {
		t.Errorf("a second connection beside one in use: %q", over)
	}
}

func TestRate(t *testing.T) {
	var g Gate
	b := Limits{Connections: 100, PerClient: 100, Rate: 2, RatePerClient: 2}
	now := time.Unix(0, 0)
	c := from("192.0.2.1")
	for i, want := range []bool{false, false, true} {
		if over := g.Enter(new(Place), c, b, now); (over != "") != want {
			t.Errorf("connection %d: %q", i, over)
		}
	}
	if over := g.Enter(new(Place), c, b, now.Add(500*time.Millisecond)); over != "" {
		t.Error("no token after half a second at 2 a second")
	}
}

package dnsfilter

import (
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"egressd/policy"
)

var zeroPrefix netip.Prefix // the default range

func newPins(t testing.TB, prefix string) *Pins {
	t.Helper()
	p, err := NewPins(netip.MustParsePrefix(prefix))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func pinned(t testing.TB, p *Pins, name string) netip.Addr {
	t.Helper()
	a, err := p.Pin(host(t, name))
	if err != nil {
		t.Fatalf("pin %s: %v", name, err)
	}
	return a
}

func TestPinsKeepTheirNames(t *testing.T) {
	p, err := NewPins(zeroPrefix)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[netip.Addr]string{}
	for i := range 1000 {
		name := fmt.Sprintf("h%d.test", i)
		a := pinned(t, p, name)
		if last := a.As4()[3]; last == 0 || last == 255 || !netip.MustParsePrefix("198.18.0.0/15").Contains(a) {
			t.Fatalf("%s got %s", name, a)
		}
		if other, dup := seen[a]; dup {
			t.Fatalf("%s and %s share %s", name, other, a)
		}
		seen[a] = name
	}
	for a, name := range seen {
		if again := pinned(t, p, name); again != a {
			t.Errorf("%s moved from %s to %s", name, a, again)
		}
		for _, spelled := range []netip.Addr{a, netip.AddrFrom16(a.As16())} {
			if h, known, synthetic := p.NameOf(spelled); h.Name() != name || !known || !synthetic {
				t.Errorf("NameOf(%s) = %v %v %v, want %s", spelled, h, known, synthetic, name)
			}
		}
	}
}

func TestNameOfUnknown(t *testing.T) {
	p, _ := NewPins(zeroPrefix)
	pinned(t, p, "a.test")
	tests := []struct {
		addr      string
		synthetic bool
	}{
		{"198.18.0.0", true}, // the network itself
		{"198.18.0.2", true}, // next to be handed out
		{"198.18.0.255", true},
		{"198.19.255.254", true}, // beyond the table's bound
		{"198.19.255.255", true},
		{"198.17.255.255", false},
		{"198.20.0.0", false},
		{"::", false},
		{"127.0.0.1", false},
	}
	for _, tt := range tests {
		h, known, synthetic := p.NameOf(netip.MustParseAddr(tt.addr))
		if known || synthetic != tt.synthetic || !h.IsZero() {
			t.Errorf("NameOf(%s) = %v %v %v, want synthetic %v", tt.addr, h, known, synthetic, tt.synthetic)
		}
	}
	for _, p := range []*Pins{nil, {}} {
		if _, known, synthetic := p.NameOf(netip.MustParseAddr("198.18.0.1")); known || synthetic {
			t.Error("an empty table knows an address")
		}
		if _, err := p.Pin(host(t, "a.test")); err == nil {
			t.Error("an empty table pins")
		}
	}
	if _, known, synthetic := p.NameOf(netip.Addr{}); known || synthetic {
		t.Error("the zero address is known")
	}
	for _, h := range []policy.Host{{}, policy.HostFromAddr(netip.MustParseAddr("192.0.2.1"))} {
		if _, err := p.Pin(h); err == nil {
			t.Errorf("%v was pinned", h)
		}
	}
}

func TestPinsPrefixes(t *testing.T) {
	tests := []struct {
		prefix string
		size   int // 0: refused
	}{
		{"198.18.0.0/15", maxPins},
		{"10.0.0.0/8", maxPins},
		{"10.1.0.0/16", 256 * 254},
		{"192.0.2.0/24", 254},
		{"192.0.2.128/25", 126},
		{"192.0.2.4/30", 2},
		{"192.0.2.4/31", 0},
		{"192.0.2.1/24", 0}, // host bits
		{"2001:db8::/64", 0},
		{"::ffff:10.0.0.0/104", 0},
	}
	for _, tt := range tests {
		p, err := NewPins(netip.MustParsePrefix(tt.prefix))
		if (err != nil) != (tt.size == 0) {
			t.Errorf("%s: %v", tt.prefix, err)
			continue
		}
		if err != nil {
			continue
		}
		if p.size != tt.size {
			t.Errorf("%s: %d addresses, want %d", tt.prefix, p.size, tt.size)
		}
		for _, slot := range []int{0, p.size / 2, p.size - 1} {
			a := p.addr(slot)
			if back, ok := p.slot(a); !ok || back != slot || !p.prefix.Contains(a) {
				t.Errorf("%s: slot %d is %s is slot %d", tt.prefix, slot, a, back)
			}
		}
	}
}

func TestPinsStayWhileAnswersLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPins(t, "192.0.2.0/30") // .1 and .2
		a := pinned(t, p, "a.test")
		time.Sleep(time.Second)
		b := pinned(t, p, "b.test")
		if _, err := p.Pin(host(t, "c.test")); err == nil {
			t.Fatal("a third name found room among two addresses in use")
		}
		time.Sleep(pinHold - 2*time.Second)
		if _, _, ok := p.NameOf(a); !ok { // a connection arrives: a.test is in use
			t.Fatal("a.test is gone")
		}
		if _, err := p.Pin(host(t, "c.test")); err == nil {
			t.Fatal("an address changed hands while an answer with it may be kept")
		}
		time.Sleep(2 * time.Second)
		if c := pinned(t, p, "c.test"); c != b {
			t.Errorf("c.test got %s, want %s, the one idle for longest", c, b)
		}
		if h, known, _ := p.NameOf(b); !known || h.Name() != "c.test" {
			t.Errorf("%s means %v", b, h)
		}
		if _, err := p.Pin(host(t, "b.test")); err == nil {
			t.Error("b.test kept its address, or took that of a.test too soon")
		}
		if again := pinned(t, p, "a.test"); again != a {
			t.Errorf("a.test moved to %s", again)
		}
	})
}

// wildPin claims an address for a name below a wildcard.
func wildPin(t testing.TB, p *Pins, name, client string) error {
	t.Helper()
	_, err := p.pin(pinRequest{name: host(t, name), owner: netip.MustParseAddr(client)})
	return err
}

// flood claims wild names until one fails, at most as many as there are
// addresses, and reports how many there were.
func flood(t testing.TB, p *Pins, client, prefix string) int {
	t.Helper()
	for i := range p.size {
		if wildPin(t, p, fmt.Sprintf("%s%d.wild.test", prefix, i), client) != nil {
			return i
		}
	}
	return p.size
}

func TestPinsFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPins(t, "192.0.2.0/24") // 254, 63 of them for spelled names
		const bad, other = "192.0.2.1", "192.0.2.2"
		if n := flood(t, p, bad, "a"); n < 90 || n > 100 {
			t.Errorf("a client that floods got %d of 254 addresses, want half of 191", n)
		}
		for i := range 40 {
			if err := wildPin(t, p, fmt.Sprintf("o%d.wild.test", i), other); err != nil {
				t.Fatalf("beside a client that floods, name %d of another: %v", i, err)
			}
		}
		for c := range 20 {
			if n := flood(t, p, fmt.Sprintf("192.0.2.%d", 100+c), fmt.Sprintf("c%d-", c)); n == 0 && c < 5 {
				t.Errorf("flooding client %d found no room at all", c)
			}
		}
		if got := p.wild.Len(); got > 191 {
			t.Errorf("wild names have %d addresses", got)
		}
		for i := range 63 {
			pinned(t, p, fmt.Sprintf("s%d.test", i))
		}
		if _, err := p.Pin(host(t, "one-more.test")); err == nil {
			t.Error("a young pin changed hands")
		}
		time.Sleep(pinHold)
		if n := flood(t, p, bad, "b"); n == 0 {
			t.Error("no new wild name once the old ones are idle")
		}
		for i := range 63 {
			a := pinned(t, p, fmt.Sprintf("s%d.test", i))
			if h, known, _ := p.NameOf(a); !known || h.Name() != fmt.Sprintf("s%d.test", i) {
				t.Errorf("%s means %v", a, h)
			}
		}
		checkPins(t, p)
	})
}

// A client that keeps its wild names in use does not come by those of others.
func TestPinsGreedy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPins(t, "192.0.2.0/24")
		const bad, other = "192.0.2.1", "192.0.2.2"
		had := flood(t, p, bad, "a")
		for round := range 20 {
			for i := range 30 {
				if err := wildPin(t, p, fmt.Sprintf("r%d-%d.wild.test", round, i), other); err != nil {
					t.Fatalf("round %d, name %d: %v", round, i, err)
				}
			}
			for range 2 {
				time.Sleep(pinHold / 2)
				flood(t, p, bad, "a")
			}
			for i := range 50 {
				_ = wildPin(t, p, fmt.Sprintf("more%d-%d.wild.test", round, i), bad)
			}
		}
		if got := p.owned[netip.MustParseAddr(bad)].Len(); got > had {
			t.Errorf("a greedy client grew from %d to %d addresses", had, got)
		}
		checkPins(t, p)
	})
}

// A name moves between the two kinds as the policy changes, and keeps its
// address where it can.
func TestPinsChangeKind(t *testing.T) {
	p := newPins(t, "192.0.2.0/24")
	a := pinned(t, p, "a.test")
	for _, spelled := range []bool{false, true, true, false, false} {
		got, err := p.pin(pinRequest{name: host(t, "a.test"), owner: netip.MustParseAddr("192.0.2.1"), spelled: spelled})
		if err != nil || got != a {
			t.Fatalf("a.test moved from %s to %s, %v", a, got, err)
		}
		checkPins(t, p)
	}
	if p.wild.Len() != 1 || p.spelled.Len() != 0 {
		t.Errorf("%d wild, %d spelled", p.wild.Len(), p.spelled.Len())
	}
}

// checkPins holds what is always true of a table.
func checkPins(t *testing.T, p *Pins) {
	t.Helper()
	owned := 0
	for client, own := range p.owned {
		if own.Len() == 0 {
			t.Errorf("an empty list for %s", client)
		}
		owned += own.Len()
	}
	if owned != p.wild.Len() || len(p.byName) != len(p.bySlot) || p.wild.Len()+p.spelled.Len() != len(p.bySlot) || len(p.bySlot) > p.size {
		t.Errorf("%d owned, %d wild, %d spelled, %d names, %d slots of %d",
			owned, p.wild.Len(), p.spelled.Len(), len(p.byName), len(p.bySlot), p.size)
	}
	for name, e := range p.byName {
		if e.name != name || p.bySlot[e.slot] != e {
			t.Errorf("%v: pin %+v", name, e)
		}
	}
}

func TestPinsConcurrently(t *testing.T) {
	p := newPins(t, "192.0.2.0/24")
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := range 200 {
				name := fmt.Sprintf("h%d.test", (i*7+w)%100)
				if a := pinned(t, p, name); a.IsValid() {
					if h, known, _ := p.NameOf(a); !known || h.Name() != name {
						t.Errorf("%s maps back to %v", name, h)
					}
				}
			}
		})
	}
	wg.Wait()
}

func BenchmarkPin(b *testing.B) {
	p, _ := NewPins(zeroPrefix)
	h := host(b, "api.example.com")
	b.ReportAllocs()
	for b.Loop() {
		a, _ := p.Pin(h)
		p.NameOf(a)
	}
}

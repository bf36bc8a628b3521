package proxy

import (
	"context"
	"net"
	"net/netip"
	"testing"
	"time"

	"egressd/policy"
	"egressd/proxy/internal/socket"
)

func TestResets(t *testing.T) {
	var r Resets
	now := time.Now()
	from, to := netip.MustParseAddrPort("192.0.2.1:40000"), netip.MustParseAddrPort("198.51.100.1:443")
	r.note(from, to, now)
	for _, tt := range []struct {
		name     string
		from, to netip.AddrPort
		after    time.Duration
		want     bool
	}{
		{"at once", from, to, 0, true},
		{"another port", netip.MustParseAddrPort("192.0.2.1:40001"), to, 0, false},
		{"another destination", from, from, 0, false},
		{"as long as the kernel remembers", from, to, resetMemory, true},
		{"later", from, to, 2 * resetMemory, false},
	} {
		if got := r.hits(tt.from, tt.to, now.Add(tt.after)); got != tt.want {
			t.Errorf("%s: %t", tt.name, got)
		}
	}
	for i := range 3 * resetMost {
		r.note(netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(i >> 16), 1}), uint16(i)), to, now)
	}
	if n := len(r.young) + len(r.old); n > 2*resetMost {
		t.Errorf("%d are remembered", n)
	}
	(*Resets)(nil).note(from, to, now)
	if (*Resets)(nil).hits(from, to, now) {
		t.Error("nil remembers")
	}
}

// TestDialComesBack has the first source ports of a dial be those of connections
// that the gate has reset.
func TestDialComesBack(t *testing.T) {
	for _, taken := range []int{0, 1, redials, redials + 1} {
		g := newGate(t, "a.example")
		g.name("a.example", 443, serveOrigin(t, echo))
		g.Resets = new(Resets)
		dial, n := g.dialFunc, 0
		g.dialFunc = func(ctx context.Context, d *net.Dialer, network, address string) (net.Conn, error) {
			c, err := dial(ctx, d, network, address)
			if n++; err == nil && n <= taken {
				g.Resets.note(socket.AddrPort(c.LocalAddr()), netip.MustParseAddrPort(address), g.now())
			}
			return c, err
		}
		c, d := g.dial(context.Background(), someConn(g.Server), policy.Request{Host: hostOf(t, "a.example"), Port: 443})
		if c != nil {
			_ = c.Close()
		}
		if want := taken <= redials; (c != nil) != want || d.Allowed() != want || n != min(taken, redials)+1 {
			t.Errorf("%d ports taken: %d dials, %+v", taken, n, d)
		}
	}
}

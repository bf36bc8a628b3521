package proxy

import (
	"context"
	"net"
	"net/netip"
	"testing"

	"egressd/policy"
	"egressd/proxy/internal/exit"
	"egressd/proxy/internal/socket"
)

// TestDialComesBack has the first source ports of a dial be those of connections
// that the gate has reset.
func TestDialComesBack(t *testing.T) {
	for _, taken := range []int{0, 1, exit.Redials, exit.Redials + 1} {
		g := newGate(t, "a.example")
		g.name("a.example", 443, serveOrigin(t, echo))
		g.Resets = new(Resets)
		dial, n := g.dialFunc, 0
		g.dialFunc = func(ctx context.Context, d *net.Dialer, network, address string) (net.Conn, error) {
			c, err := dial(ctx, d, network, address)
			if n++; err == nil && n <= taken {
				g.Resets.Note(socket.AddrPort(c.LocalAddr()), netip.MustParseAddrPort(address), g.now())
			}
			return c, err
		}
		r := policy.Request{Host: hostOf(t, "a.example"), Port: 443}
		addrs, _ := g.find(r)
		got := g.take(r, addrs)
		c, d := got.Conn, got.Decision
		if c != nil {
			_ = c.Close()
		}
		if want := taken <= exit.Redials; (c != nil) != want || d.Allowed() != want || n != min(taken, exit.Redials)+1 {
			t.Errorf("%d ports taken: %d dials, %+v", taken, n, d)
		}
	}
}

package proxy

import (
	"context"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"egressd/policy"
	"egressd/proxy/internal/dial"
	"egressd/proxy/internal/exit"
)

// TestDialRejudgesTheLiteral changes the policy between look-up and dial, and
// lets the dialler go astray: the last look sees both.
func TestDialRejudgesTheLiteral(t *testing.T) {
	r := policy.Request{Host: hostOf(t, "a.example"), Port: 443}
	t.Run("policy changed", func(t *testing.T) {
		g := newGate(t, "a.example")
		g.name("a.example", 443, serveOrigin(t, echo))
		addrs, d := g.find(r)
		if !d.Allowed() {
			t.Fatal(d)
		}
		g.setPolicy("a.example", "deny 93.184.216.34")
		if got := g.take(r, addrs); got.Conn != nil || got.Decision.Reason != policy.ReasonDeniedByRule || g.dials.Load() != 0 {
			t.Errorf("%+v", got)
		}
	})
	t.Run("another address", func(t *testing.T) {
		g := newGate(t, "a.example", "93.184.216.35:443")
		g.dialFunc = func(ctx context.Context, d *net.Dialer, network, _ string) (net.Conn, error) {
			return nil, d.ControlContext(ctx, network, "93.184.216.35:443", nil)
		}
		if got := g.take(r, []netip.Addr{public}); got.Decision.Reason != policy.ReasonInternal {
			t.Errorf("%+v", got)
		}
	})
}

// TestDialDoesNotResolveAgain flips the answer after the first look-up: a flow
// is judged and dialled by the one it got.
func TestDialDoesNotResolveAgain(t *testing.T) {
	g := newGate(t, "a.example").start()
	g.name("a.example", 443, serveOrigin(t, tlsEcho))
	c, err := openConnect(g, "a.example", 443) // looked up before the 200
	if err != nil {
		t.Fatal(err)
	}
	g.answer("a.example", mustAddr("10.0.0.1"))
	if !speakTLS("a.example")(c) {
		t.Error("the flow did not pass")
	}
	if d := g.decision(1); d.Addr != "93.184.216.34:443" || g.lookups.Load() != 1 {
		t.Errorf("%d look-ups, %+v", g.lookups.Load(), d)
	}
}

// TestRace tries several addresses: the first that answers wins, in bounded
// time, and nothing is left behind.
func TestRace(t *testing.T) {
	a4, b4, a6 := mustAddr("93.184.216.34"), mustAddr("93.184.216.35"), mustAddr("2606:2800:220:1::1")
	tests := []struct {
		name   string
		addrs  []netip.Addr
		hangs  []netip.Addr // the others refuse, but for the one that answers
		answer netip.Addr
		reason policy.Reason
		within time.Duration
	}{
		{"one", []netip.Addr{a4}, nil, a4, policy.ReasonAllowed, 0},
		{"second after a refusal", []netip.Addr{a4, b4}, nil, b4, policy.ReasonAllowed, 0},
		{"second after silence", []netip.Addr{a4, b4}, []netip.Addr{a4}, b4, policy.ReasonAllowed, dial.Stagger},
		{"other family after silence", []netip.Addr{a6, a4, b4}, []netip.Addr{a6}, a4, policy.ReasonAllowed, dial.Stagger},
		{"all refuse", []netip.Addr{a4, b4}, nil, netip.Addr{}, policy.ReasonRefused, 0},
		{"all hang", []netip.Addr{a4, b4}, []netip.Addr{a4, b4}, netip.Addr{}, policy.ReasonConnectTimeout, exit.DialTimeout},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGate(t, "a.example")
				var under atomic.Int64
				g.dialFunc = func(ctx context.Context, d *net.Dialer, network, address string) (net.Conn, error) {
					under.Add(1)
					defer under.Add(-1)
					if err := d.ControlContext(ctx, network, address, nil); err != nil {
						return nil, err
					}
					switch a := netip.MustParseAddrPort(address).Addr(); {
					case a == tt.answer:
						c, _ := net.Pipe()
						return c, nil
					case slices.Contains(tt.hangs, a):
						<-ctx.Done()
						return nil, ctx.Err()
					}
					return nil, syscall.ECONNREFUSED
				}
				start := time.Now()
				got := g.take(policy.Request{Host: hostOf(t, "a.example"), Port: 443}, tt.addrs)
				if got.Decision.Reason != tt.reason || got.Addr != tt.answer || (got.Conn != nil) != tt.answer.IsValid() {
					t.Errorf("%+v", got)
				}
				if took := time.Since(start); took != tt.within {
					t.Errorf("took %v, want %v", took, tt.within)
				}
				if n := under.Load(); n != 0 {
					t.Errorf("%d attempts go on", n)
				}
			})
		})
	}
}

func TestDialReasons(t *testing.T) {
	for err, want := range map[error]policy.Reason{
		&net.OpError{Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}: policy.ReasonRefused,
		&net.OpError{Err: os.ErrDeadlineExceeded}:                              policy.ReasonConnectTimeout,
		syscall.ETIMEDOUT:    policy.ReasonConnectTimeout,
		syscall.EMFILE:       policy.ReasonOverload,
		syscall.ENETUNREACH:  policy.ReasonUnreachable,
		syscall.EHOSTUNREACH: policy.ReasonUnreachable,
	} {
		if got := dial.Reason(err); got != want {
			t.Errorf("%v: %v, want %v", err, got, want)
		}
	}
}

// TestRefusedOrigin checks what each door says about an origin that is down.
func TestRefusedOrigin(t *testing.T) {
	for i, want := range []string{"HTTP/1.1 502", "reply 5", "reply 91"} {
		g := newGate(t, "a.example:22").start()
		g.answer("a.example", public) // and nobody listens there
		if _, err := clients()[i].open(g, "a.example", 22); err == nil || err.Error()[:len(want)] != want {
			t.Errorf("%s: %v, want %s", clients()[i].name, err, want)
		}
		if d := g.decision(1); d.Reason != "connection_refused" {
			t.Errorf("%+v", d)
		}
	}
}

// TestDialManyAtOnce races many flows for the race detector.
func TestDialManyAtOnce(t *testing.T) {
	g := newGate(t, "a.example:22").start()
	g.name("a.example", 22, serveOrigin(t, echo))
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			if c, err := openSocks5(g, "a.example", 22); err != nil || !pingPong(c) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

package dnsfilter

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/miekg/dns"

	"egressd/policy"
)

func TestFailover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dead atomic.Int64
		z := fromZone("a.test. 1 IN A 192.0.2.1")
		r, _ := faked(t, func(ctx context.Context, u Upstream, q *dns.Msg) (*dns.Msg, error) {
			if u.addr.Addr().String() == "192.0.2.1" {
				dead.Add(1)
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return z(ctx, u, q)
		}, "192.0.2.1", "192.0.2.2")
		begin := time.Now()
		if got, err := lookup(t, r, "a.test"); len(got) != 1 || time.Since(begin) != tryTimeout {
			t.Fatalf("%v, %v after %v", got, err, time.Since(begin))
		}
		time.Sleep(2 * time.Second) // the answer has expired, the upstream still rests
		begin, n := time.Now(), dead.Load()
		if got, _ := lookup(t, r, "a.test"); len(got) != 1 || time.Since(begin) != 0 || dead.Load() != n {
			t.Errorf("a dead upstream was asked again at once: %v", time.Since(begin))
		}
		time.Sleep(coolDown)
		_, _ = lookup(t, r, "a.test")
		if dead.Load() == n {
			t.Error("a dead upstream is never tried again")
		}
	})
}

func TestLostDatagram(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		z := fromZone("a.test. 60 IN A 192.0.2.1")
		var lost sync.Map // by type
		r, _ := faked(t, func(ctx context.Context, u Upstream, q *dns.Msg) (*dns.Msg, error) {
			if _, again := lost.LoadOrStore(q.Question[0].Qtype, true); !again {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return z(ctx, u, q)
		})
		if got, err := lookup(t, r, "a.test"); len(got) != 1 {
			t.Errorf("the only upstream was asked once: %v, %v", got, err)
		}
		if len(r.resting) != 0 {
			t.Error("an upstream that answers still counts as failed")
		}
	})
}

func TestAllUpstreamsFail(t *testing.T) {
	refuse := func(_ context.Context, _ Upstream, q *dns.Msg) (*dns.Msg, error) {
		m := new(dns.Msg)
		m.SetRcode(q, dns.RcodeRefused)
		return m, nil
	}
	silent := func(ctx context.Context, _ Upstream, _ *dns.Msg) (*dns.Msg, error) {
		<-ctx.Done()
		return nil, &net.OpError{Op: "read", Err: ctx.Err()}
	}
	tests := []struct {
		name   string
		reply  func(context.Context, Upstream, *dns.Msg) (*dns.Msg, error)
		want   policy.Reason
		within time.Duration
	}{
		{"refused", refuse, policy.ReasonDNSError, 0},
		{"silent", silent, policy.ReasonDNSTimeout, lookupTimeout},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, calls := faked(t, tt.reply, "192.0.2.1", "192.0.2.2", "192.0.2.3")
				begin := time.Now()
				_, err := lookup(t, r, "a.test")
				checkReason(t, err, tt.want)
				if took := time.Since(begin); took > tt.within {
					t.Errorf("took %v, want at most %v", took, tt.within)
				}
				n := calls.Load()
				if _, err := lookup(t, r, "a.test"); err == nil || calls.Load() != n {
					t.Error("a failure is asked again at once (RFC 9520)")
				}
				time.Sleep(failureTTL)
				if _, _ = lookup(t, r, "a.test"); calls.Load() == n {
					t.Error("a failure is remembered for too long")
				}
			})
		})
	}
}

// asked keeps what was told of upstreams: how often each answered, and failed.
type asked struct {
	mu   sync.Mutex
	good map[string][]time.Duration
	bad  map[string][]time.Duration
}

func (a *asked) hear(u Upstream, took time.Duration, failed bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if failed {
		a.bad[u.String()] = append(a.bad[u.String()], took)
		return
	}
	a.good[u.String()] = append(a.good[u.String()], took)
}

// Each upstream is told with the time that it took: the dead one with the whole of its
// patience, the one that answers from when it was asked.
func TestAskedTellsEachUpstream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		z := fromZone("a.test. 60 IN A 192.0.2.1")
		r, _ := faked(t, func(ctx context.Context, u Upstream, q *dns.Msg) (*dns.Msg, error) {
			if u.addr.Addr().String() == "192.0.2.1" {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			time.Sleep(3 * time.Millisecond)
			return z(ctx, u, q)
		}, "192.0.2.1", "192.0.2.2")
		a := &asked{good: map[string][]time.Duration{}, bad: map[string][]time.Duration{}}
		r.Asked = a.hear
		if _, err := lookup(t, r, "a.test"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		for server, want := range map[string]time.Duration{"udp://192.0.2.1:53": tryTimeout, "udp://192.0.2.2:53": 3 * time.Millisecond} {
			got := append(a.bad[server], a.good[server]...)
			if len(got) != 2 || got[0] != want || got[1] != want { // A and AAAA
				t.Errorf("%s: %v, want %v twice", server, got, want)
			}
		}
		if len(a.good["udp://192.0.2.1:53"])+len(a.bad["udp://192.0.2.2:53"]) > 0 {
			t.Errorf("good: %v, bad: %v", a.good, a.bad)
		}
	})
}

// Over UDP the replies that need no goroutine are told, too.
func TestAskedOverUDP(t *testing.T) {
	up := startUpstream(t, zone("a.test. 60 IN A 192.0.2.1"))
	a := &asked{good: map[string][]time.Duration{}, bad: map[string][]time.Duration{}}
	r := &Resolver{Upstreams: []Upstream{up.Upstream}, Asked: a.hear}
	if got, err := lookup(t, r, "a.test"); len(got) != 1 {
		t.Fatalf("%v, %v", got, err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if n := len(a.good[up.String()]); n != 2 || len(a.bad) > 0 {
		t.Errorf("%d answers were told, want 2; failures: %v", n, a.bad)
	}
	for _, took := range a.good[up.String()] {
		if took <= 0 || took > tryTimeout {
			t.Errorf("it took %v", took)
		}
	}
}

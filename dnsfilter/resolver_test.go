package dnsfilter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/miekg/dns"

	"egressd/policy"
)

// faked is a resolver whose upstreams are a function; calls counts questions.
func faked(t testing.TB, reply func(ctx context.Context, u Upstream, q *dns.Msg) (*dns.Msg, error), ups ...string) (*Resolver, *atomic.Int64) {
	t.Helper()
	calls := new(atomic.Int64)
	r := &Resolver{ask: func(ctx context.Context, u Upstream, q *dns.Msg) (*dns.Msg, error) {
		calls.Add(1)
		return reply(ctx, u, q)
	}}
	if len(ups) == 0 {
		ups = []string{"192.0.2.53"}
	}
	for _, s := range ups {
		u, err := ParseUpstream(s)
		if err != nil {
			t.Fatal(err)
		}
		r.Upstreams = append(r.Upstreams, u)
	}
	return r, calls
}

// fromZone answers every upstream from records.
func fromZone(lines ...string) func(context.Context, Upstream, *dns.Msg) (*dns.Msg, error) {
	z := zone(lines...)
	return func(_ context.Context, _ Upstream, q *dns.Msg) (*dns.Msg, error) { return z("udp", q), nil }
}

func lookup(t testing.TB, r *Resolver, name string) ([]string, error) {
	t.Helper()
	addrs, err := r.Lookup(context.Background(), host(t, name))
	var out []string
	for _, a := range addrs {
		out = append(out, a.String())
	}
	return out, err
}

func TestLookup(t *testing.T) {
	tests := []struct {
		name   string
		zone   []string
		want   []string
		reason policy.Reason // when want is empty
		exists bool
	}{
		{"both families, IPv4 first", []string{"a.test. 60 IN AAAA 2001:db8::1", "a.test. 60 IN A 192.0.2.1"}, []string{"192.0.2.1", "2001:db8::1"}, 0, true},
		{"IPv4 alone", []string{"a.test. 60 IN A 192.0.2.1"}, []string{"192.0.2.1"}, 0, true},
		{"IPv6 alone", []string{"a.test. 60 IN AAAA 2001:db8::1"}, []string{"2001:db8::1"}, 0, true},
		{"mapped addresses stay for policy to judge", []string{"a.test. 60 IN AAAA ::ffff:127.0.0.1"}, []string{"::ffff:127.0.0.1"}, 0, true},
		{"CNAME chain", []string{"a.test. 60 IN CNAME b.test.", "b.test. 60 IN CNAME c.test.", "c.test. 60 IN A 192.0.2.3"}, []string{"192.0.2.3"}, 0, true},
		{"CNAME to nowhere", []string{"a.test. 60 IN CNAME b.test."}, nil, policy.ReasonNotFound, true},
		{"CNAME loop", []string{"a.test. 60 IN CNAME b.test.", "b.test. 60 IN CNAME a.test."}, nil, policy.ReasonDNSError, false},
		{"records of another name", []string{"b.test. 60 IN A 192.0.2.3"}, nil, policy.ReasonNotFound, false},
		{"no addresses", []string{"a.test. 60 IN TXT x"}, nil, policy.ReasonNotFound, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, _ := faked(t, fromZone(tt.zone...))
			got, err := lookup(t, r, "a.test")
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %v, %v; want %v", got, err, tt.want)
			}
			if len(tt.want) == 0 {
				checkReason(t, err, tt.reason)
				if le, ok := errors.AsType[*LookupError](err); ok && le.exists != tt.exists {
					t.Errorf("exists %v", le.exists)
				}
			}
		})
	}
}

// checkReason looks for the reason the way proxies do.
func checkReason(t testing.TB, err error, want policy.Reason) {
	t.Helper()
	var pr interface{ PolicyReason() policy.Reason }
	if !errors.As(err, &pr) || pr.PolicyReason() != want || ReasonOf(err) != want {
		t.Errorf("error %v carries %s, want %s", err, ReasonOf(err), want)
	}
}

func TestUnasked(t *testing.T) {
	r, calls := faked(t, fromZone())
	if got, err := r.Lookup(t.Context(), host(t, "192.0.2.1")); err != nil || len(got) != 1 {
		t.Errorf("a literal: %v, %v", got, err)
	}
	for _, name := range []string{"localhost", "a.localhost"} {
		if got, err := lookup(t, r, name); !slices.Equal(got, []string{"127.0.0.1", "::1"}) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	for _, name := range []string{"a.onion", "invalid", "b.a.invalid"} {
		_, err := lookup(t, r, name)
		checkReason(t, err, policy.ReasonNotFound)
	}
	_, err := r.Lookup(t.Context(), policy.Host{})
	checkReason(t, err, policy.ReasonMalformed)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Lookup(cancelled, host(t, "a.test")); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	for _, r := range []*Resolver{nil, {}} {
		_, err := r.Lookup(t.Context(), host(t, "a.test"))
		checkReason(t, err, policy.ReasonDNSError)
	}
	if calls.Load() != 0 {
		t.Errorf("%d questions were asked", calls.Load())
	}
}

func TestAnswersAreBounded(t *testing.T) {
	var lines []string
	for i := range 200 {
		lines = append(lines, fmt.Sprintf("a.test. 60 IN A 192.0.2.%d", i), fmt.Sprintf("a.test. 60 IN AAAA 2001:db8::%d", i))
	}
	r, _ := faked(t, fromZone(lines[:2*maxAddrs]...))
	if got, err := lookup(t, r, "a.test"); len(got) != 2*maxAddrs {
		t.Errorf("%d addresses, %v", len(got), err)
	}
	// One more, which might be the private one: nothing is picked.
	r, _ = faked(t, fromZone(lines[:2*maxAddrs+2]...))
	got, err := lookup(t, r, "a.test")
	checkReason(t, err, policy.ReasonDNSError)
	if len(got) != 0 {
		t.Errorf("%d addresses", len(got))
	}
}

func TestCallersDoNotShareTheSlice(t *testing.T) {
	r, _ := faked(t, fromZone("a.test. 60 IN A 192.0.2.1"))
	first, _ := r.Lookup(t.Context(), host(t, "a.test"))
	first[0] = loopback()[0]
	if got, _ := lookup(t, r, "a.test"); got[0] != "192.0.2.1" {
		t.Errorf("the cache now says %v", got)
	}
}

func TestTTL(t *testing.T) {
	tests := []struct {
		name string
		zone []string
		keep time.Duration // asked again exactly then
	}{
		{"the record's", []string{"a.test. 60 IN A 192.0.2.1", "a.test. 90 IN AAAA 2001:db8::1"}, 60 * time.Second},
		{"the chain's shortest", []string{"a.test. 20 IN CNAME b.test.", "b.test. 60 IN A 192.0.2.1"}, 20 * time.Second},
		{"zero becomes a second", []string{"a.test. 0 IN A 192.0.2.1"}, minTTL},
		{"a day becomes an hour", []string{"a.test. 86400 IN A 192.0.2.1", "a.test. 86400 IN AAAA 2001:db8::1"}, maxTTL},
		{"top bit set is zero", []string{"a.test. 2147483648 IN A 192.0.2.1"}, minTTL},
		{"one family is looked for again", []string{"a.test. 86400 IN A 192.0.2.1"}, maxNegTTL},
		{"negative: the SOA's minimum", nil, 30 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, calls := faked(t, fromZone(tt.zone...))
				_, first := lookup(t, r, "a.test")
				asked := calls.Load()
				time.Sleep(tt.keep - time.Nanosecond)
				if _, err := lookup(t, r, "a.test"); calls.Load() != asked || (err == nil) != (first == nil) {
					t.Errorf("asked again %v early, or the error changed: %v, %v", time.Nanosecond, first, err)
				}
				time.Sleep(time.Nanosecond)
				_, _ = lookup(t, r, "a.test")
				if calls.Load() != 2*asked {
					t.Errorf("a stale answer was served after %v", tt.keep)
				}
			})
		})
	}
}

func TestNegativeWithoutSOA(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, calls := faked(t, func(_ context.Context, _ Upstream, q *dns.Msg) (*dns.Msg, error) {
			m := new(dns.Msg)
			m.SetRcode(q, dns.RcodeNameError)
			return m, nil
		})
		_, err := lookup(t, r, "a.test")
		checkReason(t, err, policy.ReasonNotFound)
		time.Sleep(failureTTL)
		_, _ = lookup(t, r, "a.test")
		if calls.Load() != 4 {
			t.Errorf("%d questions, want 4: a bare NXDOMAIN is not worth caching", calls.Load())
		}
	})
}

func TestHalfAnAnswer(t *testing.T) {
	drops := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	tests := []struct {
		name string
		fate func(context.Context) error // of AAAA questions
		took time.Duration
	}{
		{"lost", func(context.Context) error { return errors.New("lost") }, 0},
		{"never answered", drops, otherFamilyWait}, // not tryTimeout for each upstream
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				z := fromZone("a.test. 3600 IN A 192.0.2.1")
				r, calls := faked(t, func(ctx context.Context, u Upstream, q *dns.Msg) (*dns.Msg, error) {
					if q.Question[0].Qtype == dns.TypeAAAA {
						return nil, tt.fate(ctx)
					}
					return z(ctx, u, q)
				})
				begin := time.Now()
				got, err := lookup(t, r, "a.test")
				if !slices.Equal(got, []string{"192.0.2.1"}) || time.Since(begin) != tt.took {
					t.Errorf("got %v, %v after %v, want %v", got, err, time.Since(begin), tt.took)
				}
				before := calls.Load()
				time.Sleep(maxHalfTTL - time.Second)
				if _, _ = lookup(t, r, "a.test"); calls.Load() != before {
					t.Error("half an answer was forgotten at once: every flow would wait again")
				}
				time.Sleep(time.Second)
				if _, _ = lookup(t, r, "a.test"); calls.Load() == before {
					t.Error("half an answer was kept as long as a whole one")
				}
			})
		})
	}
}

func TestCacheIsBounded(t *testing.T) {
	r, calls := faked(t, fromZone())
	for i := range maxCached + 100 {
		_, _ = lookup(t, r, fmt.Sprintf("h%d.test", i))
	}
	if n, m := r.cache.recent.Len(), len(r.cache.byName); n != maxCached || m != maxCached {
		t.Errorf("%d and %d entries, want %d", n, m, maxCached)
	}
	before := calls.Load()
	_, _ = lookup(t, r, fmt.Sprintf("h%d.test", maxCached+99))
	if calls.Load() != before {
		t.Error("the newest name was dropped")
	}
	_, _ = lookup(t, r, "h0.test")
	if calls.Load() == before {
		t.Error("the oldest name was kept")
	}
}

func TestLookUpsAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		z := fromZone("a.test. 60 IN A 192.0.2.1")
		r, calls := faked(t, func(ctx context.Context, u Upstream, q *dns.Msg) (*dns.Msg, error) {
			select {
			case <-release:
				return z(ctx, u, q)
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		})
		first, cancel := context.WithCancel(t.Context())
		gone := make(chan error)
		go func() { _, err := r.Lookup(first, host(t, "a.test")); gone <- err }()
		synctest.Wait()
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				if got, err := lookup(t, r, "a.test"); len(got) != 1 {
					t.Errorf("%v, %v", got, err)
				}
			})
		}
		synctest.Wait()
		cancel() // the caller who started it all
		if err := <-gone; !errors.Is(err, context.Canceled) {
			t.Errorf("the cancelled caller got %v", err)
		}
		close(release)
		wg.Wait()
		if calls.Load() != 2 {
			t.Errorf("%d questions, want one a family", calls.Load())
		}
	})
}

func TestLastCallerEndsTheLookUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running atomic.Int64
		r, _ := faked(t, func(ctx context.Context, _ Upstream, _ *dns.Msg) (*dns.Msg, error) {
			running.Add(1)
			defer running.Add(-1)
			<-ctx.Done()
			return nil, ctx.Err()
		})
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, err := r.Lookup(ctx, host(t, "a.test"))
		checkReason(t, err, policy.ReasonDNSTimeout)
		if running.Load() != 0 || len(r.calls) != 0 {
			t.Errorf("%d questions still under way after Lookup returned", running.Load())
		}
		if r.cache.recent.Len() != 0 {
			t.Error("giving up was remembered as an answer")
		}
		if len(r.resting) != 0 {
			t.Error("the upstream was blamed for our leaving")
		}
	})
}

func TestFlightsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := faked(t, func(ctx context.Context, _ Upstream, _ *dns.Msg) (*dns.Msg, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		var wg sync.WaitGroup
		for i := range maxCalls {
			wg.Go(func() { _, _ = lookup(t, r, fmt.Sprintf("h%d.test", i)) })
		}
		synctest.Wait()
		_, err := lookup(t, r, "one-more.test")
		checkReason(t, err, policy.ReasonOverload)
		wg.Wait()
	})
}

package flood

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"egressd/event"
	"egressd/policy"
)

// kept is a sink that keeps what it gets, unless it fails.
type kept struct {
	mu     sync.Mutex
	events []event.Event
	fail   error
}

func (k *kept) Emit(e event.Event) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.fail != nil {
		return k.fail
	}
	k.events = append(k.events, e)
	return nil
}

func (k *kept) failing(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.fail = err
}

// told reports how many lines there are, and how many denials they stand for.
func (k *kept) told() (lines, denials int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, e := range k.events {
		n := int64(0)
		switch b := e.Body.(type) {
		case *event.Connection:
			n = b.Repeated
		case *event.Query:
			n = b.Repeated
		}
		denials += int(max(n, 1))
	}
	return len(k.events), denials
}

// repeating makes a Repeats in front of a sink that keeps everything.
func repeating(t *testing.T) (*Sink, *kept) {
	k := new(kept)
	r := &Sink{To: k}
	t.Cleanup(func() { r.Close() })
	return r, k
}

func deniedQuery(client, name string) event.Event {
	return event.Event{Session: "s", Body: &event.Query{
		Verdict: event.Verdict{Reason: policy.ReasonHostNotListed}, Host: hostOf(name), QType: "A", RCode: event.NXDomain,
		Client: netip.MustParseAddrPort(client),
	}}
}

func send(t *testing.T, to event.Sink, events ...event.Event) {
	t.Helper()
	for _, e := range events {
		if err := to.Emit(e); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFloodIsSummedUp denies one question over and over, as a program does that
// wants to fill the disk.
func TestFloodIsSummedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, k := repeating(t)
		const seconds, a = 10, 5000
		for range seconds {
			for i := range a {
				send(t, r, deniedQuery(fmt.Sprintf("192.0.2.1:%d", i+1), "evil.example"))
			}
			time.Sleep(sumEvery)
			synctest.Wait()
		}
		lines, denials := k.told()
		if most := listedBurst + seconds*(listedRate+1); denials != seconds*a || lines > most {
			t.Errorf("%d lines for %d denials, want at most %d for %d", lines, denials, most, seconds*a)
		}
		last := k.events[len(k.events)-1]
		q := last.Body.(*event.Query)
		if q.Host != hostOf("evil.example") || q.First.IsZero() || last.Time.Before(q.First) || q.RCode != event.NXDomain || q.Client.Port() != a {
			t.Errorf("the sum is %+v at %v", q, last.Time)
		}
		if got := r.Summed(); got != uint64(seconds*a-(lines-seconds)) {
			t.Errorf("%d are counted as summed up, of %d with %d lines", got, seconds*a, lines)
		}
	})
}

// TestFloodOfNames asks for another name each time, from addresses that belong to
// one client.
func TestFloodOfNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, client := range []string{"127.%d.%d.1:1", "[2001:db8::%d:%d]:1"} {
			r, k := repeating(t)
			const seconds, a = 5, 3000
			for s := range seconds {
				for i := range a {
					send(t, r, deniedQuery(fmt.Sprintf(client, i%200, i%100), fmt.Sprintf("x%d-%d.example", s, i)))
				}
				time.Sleep(sumEvery)
				synctest.Wait()
			}
			lines, denials := k.told()
			if most := listedBurst + seconds*(listedRate+maxClientSums+1); denials != seconds*a || lines > most {
				t.Errorf("%s: %d lines for %d denials, want at most %d for %d", client, lines, denials, most, seconds*a)
			}
			if q := k.events[len(k.events)-1].Body.(*event.Query); !q.Host.IsZero() || q.Repeated < a-200 {
				t.Errorf("what did not fit is %+v", q)
			}
		}
	})
}

// TestManyClients floods from more clients than there is room for: lines and memory
// are bounded, and no denial is lost.
func TestManyClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, k := repeating(t)
		const clients, a = 3 * maxClients, 40
		for i := range a {
			for c := range clients {
				e := deniedQuery(fmt.Sprintf("10.0.%d.%d:1", c/250, c%250), fmt.Sprintf("x%d.example", i))
				e.Session = fmt.Sprint("s", c%2)
				send(t, r, e)
			}
		}
		if n := len(r.clients) + len(r.sums); n > 2*maxClients+maxPlainSums+200 {
			t.Errorf("%d entries", n)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		lines, denials := k.told()
		if most := allBurst + maxPlainSums + 10; denials != clients*a || lines > most {
			t.Errorf("%d lines for %d denials, want at most %d for %d", lines, denials, most, clients*a)
		}
	})
}

// TestNothingElseIsSummedUp sends what decides or ends something as fast as the
// flood.
func TestNothingElseIsSummedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		allowed := deniedQuery("192.0.2.1:1", "good.example")
		allowed.Body.(*event.Query).Verdict = event.Verdict{Decision: event.Allowed, Reason: policy.ReasonAllowed}
		second := deniedQuery("192.0.2.1:1", "good.example")
		second.WasAllowed = true
		r, k := repeating(t)
		for _, e := range []event.Event{
			allowed, second,
			{Body: &event.Connection{Verdict: event.Verdict{Decision: event.Allowed}}},
			{Body: &event.Close{Flow: 1}},
			{Body: &event.Packet{Proto: "udp"}},
			{Body: &event.Packet{Count: 9}},
		} {
			before, _ := k.told()
			for range 2000 {
				send(t, r, e)
			}
			if lines, _ := k.told(); lines != before+2000 {
				t.Errorf("%s: %d lines for 2000 events", e.Type(), lines-before)
			}
		}
	})
}

// TestSumsComeBeforeTheEnd checks that what ends a run or a session stands behind
// its denials, and what a slow client sees of its own.
func TestSumsComeBeforeTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, k := repeating(t)
		for range listedBurst + 5 {
			send(t, r, deniedQuery("192.0.2.1:1", "evil.example"))
		}
		send(t, r, deniedQuery("192.0.2.2:1", "evil.example"), event.Event{Body: &event.RunCompleted{}})
		n := len(k.events)
		if _, ok := k.events[n-1].Body.(*event.RunCompleted); !ok {
			t.Errorf("the last line is a %s", k.events[n-1].Type())
		}
		if q := k.events[n-2].Body.(*event.Query); q.Repeated != 5 || k.events[n-3].Body.(*event.Query).Client.Addr().String() != "192.0.2.2" {
			t.Errorf("before it: %+v", q)
		}
	})
}

// TestSumsOutliveAFullDisk keeps counting while nothing can be written.
func TestSumsOutliveAFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, k := repeating(t)
		for range listedBurst + 400 {
			send(t, r, deniedQuery("192.0.2.1:1", "evil.example"))
		}
		full := errors.New("disk full")
		k.failing(full)
		time.Sleep(3 * sumEvery)
		if err := r.Emit(deniedQuery("192.0.2.9:1", "other.example")); !errors.Is(err, full) {
			t.Errorf("a denial with a line of its own: %v", err)
		}
		k.failing(event.ErrQuota)
		send(t, r, deniedQuery("192.0.2.1:1", "evil.example"), deniedQuery("192.0.2.9:1", "other.example"))
		if err := r.Flush(); !errors.Is(err, event.ErrQuota) || !strings.Contains(err.Error(), "402 denials") {
			t.Errorf("%v", err)
		}
		k.failing(nil)
		time.Sleep(2 * sumEvery)
		synctest.Wait()
		if _, denials := k.told(); denials != listedBurst+402 {
			t.Errorf("%d denials are told, want %d", denials, listedBurst+402)
		}
		k.failing(full)
		r.Emit(deniedQuery("192.0.2.1:1", "evil.example"))
		for range listedBurst + 300 {
			r.Emit(deniedQuery("192.0.2.1:1", "evil.example"))
		}
		if err := r.Close(); !errors.Is(err, full) {
			t.Errorf("Close lost denials and said %v", err)
		}
	})
}

// TestRepeatsConcurrent is for the race detector; no denial is lost.
func TestRepeatsConcurrent(t *testing.T) {
	r, k := repeating(t)
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 2000 {
				send(t, r, deniedQuery(fmt.Sprintf("192.0.2.%d:1", g), "evil.example"))
				if i%500 == 0 {
					send(t, r, event.Event{Body: &event.PolicyLoaded{}})
				}
			}
		})
	}
	wg.Wait()
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if _, n := k.told(); n != 4*2000+16 {
		t.Errorf("%d events are told", n)
	}
}

func BenchmarkDenialFlood(b *testing.B) {
	for _, way := range []string{"each", "summed"} {
		b.Run(way, func(b *testing.B) {
			count := new(byteCount)
			w := &event.Writer{W: count}
			r := &Sink{To: w}
			var to event.Sink = r
			if way == "each" {
				to = w
			}
			e := deniedQuery("192.0.2.1:1", "evil.example")
			b.ReportAllocs()
			for b.Loop() {
				_ = to.Emit(e)
			}
			_ = r.Close()
			b.ReportMetric(float64(count.n)/float64(b.N), "bytes/op")
		})
	}
}

type byteCount struct{ n int }

func (c *byteCount) Write(p []byte) (int, error) { c.n += len(p); return len(p), nil }

func hostOf(name string) policy.Host {
	h, err := policy.ParseHost(name)
	if err != nil {
		panic(err)
	}
	return h
}

// BenchmarkAllowed compares the way of what is allowed, to a writer and through what
// bounds a policy.
func BenchmarkAllowed(b *testing.B) {
	for _, way := range []string{"writer", "bounded"} {
		b.Run(way, func(b *testing.B) {
			f, err := os.Create(filepath.Join(b.TempDir(), "events"))
			if err != nil {
				b.Fatal(err)
			}
			defer f.Close()
			w := &event.Writer{W: f}
			var to event.Sink = w
			if way == "bounded" {
				share, _ := w.Share(1<<40, 0, 1<<50, nil)
				s := &Sink{To: share}
				defer s.Close()
				to = s
			}
			b.RunParallel(func(pb *testing.PB) {
				e := deniedQuery("192.0.2.1:1", "good.example")
				e.Body.(*event.Query).Verdict = event.Verdict{Decision: event.Allowed, Reason: policy.ReasonAllowed}
				for pb.Next() {
					if err := to.Emit(e); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}

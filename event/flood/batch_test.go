package flood

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"egressd/event"
	"egressd/policy"
)

// A batch is summed up as its events are one by one, and a sink in front that has
// settled an entry is left its word.
func TestEmitBatchAgreesWithEmit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		outs := [2]*kept{{}, {}}
		sinks := [2]*Sink{{To: outs[0]}, {To: outs[1]}}
		random := rand.New(rand.NewPCG(1, 2)) // #nosec G404 -- the same each time
		for range 300 {
			batch := make([]event.Event, 1+random.IntN(64))
			for i := range batch {
				q := &event.Query{
					Asked:  fmt.Sprintf("n%d.test", random.IntN(50)),
					Client: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(random.IntN(3))}), 5),
				}
				q.Reason = policy.ReasonHostNotListed
				if random.IntN(5) == 0 {
					q.Decision, q.Reason = event.Allowed, policy.ReasonAllowed
				}
				batch[i] = event.Event{Time: time.Now(), Body: q}
				if random.IntN(200) == 0 {
					batch[i] = event.Event{Time: time.Now(), Body: &event.PolicyLoaded{}}
				}
			}
			for i := range batch {
				if err := sinks[1].Emit(batch[i]); err != nil {
					t.Fatal(err)
				}
			}
			sinks[0].EmitBatch(batch)
			for i := range batch {
				if batch[i].Err != nil {
					t.Fatal(batch[i].Err)
				}
			}
			time.Sleep(10 * time.Millisecond)
		}
		for _, s := range sinks {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
		_, told := outs[0].told()
		_, want := outs[1].told()
		if told != want || sinks[0].Summed() != sinks[1].Summed() || sinks[0].Summed() == 0 {
			t.Errorf("%d events and %d summed up, one by one %d and %d", told, sinks[0].Summed(), want, sinks[1].Summed())
		}
		settled := []event.Event{{Body: &event.Query{}, Settled: true, Err: event.ErrQuota}}
		before, _ := outs[0].told()
		sinks[0].EmitBatch(settled)
		if after, _ := outs[0].told(); after != before || settled[0].Err == nil {
			t.Error("what was settled was written")
		}
	})
}

// A denial that the quota has no room for is summed up, in a batch, too.
func TestEmitBatchOverQuota(t *testing.T) {
	out := &kept{fail: event.ErrQuota}
	s := &Sink{To: out}
	batch := []event.Event{
		{Body: &event.Query{Asked: "a.test", Verdict: event.Verdict{Reason: policy.ReasonHostNotListed}}},
		{Body: &event.Query{Asked: "b.test", Verdict: event.Verdict{Decision: event.Allowed}}},
	}
	s.EmitBatch(batch)
	if batch[0].Err != nil || batch[1].Err == nil || s.Summed() != 1 {
		t.Errorf("%v, %v, %d summed up", batch[0].Err, batch[1].Err, s.Summed())
	}
	out.failing(nil)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if lines, denials := out.told(); lines != 1 || denials != 1 {
		t.Errorf("%d lines for %d denials", lines, denials)
	}
}

package phase

import (
	"testing"
	"time"
)

// Nobody listens: nothing happens, and no clock is read.
func TestNobodyListens(t *testing.T) {
	var nobody Took
	if start := nobody.Start(); !start.IsZero() {
		t.Errorf("started at %v", start)
	}
	nobody.Since(Dial, 1, time.Time{})
	nobody.Lasted(Dial, 1, time.Second)
}

func TestTook(t *testing.T) {
	var got []time.Duration
	took := Took(func(p Phase, flow uint64, d time.Duration) {
		if p != Dial || flow != 7 {
			t.Errorf("phase %d of flow %d", p, flow)
		}
		got = append(got, d)
	})
	took.Since(Dial, 7, took.Start().Add(-time.Minute))
	took.Lasted(Dial, 7, 0)
	took.Lasted(Dial, 7, time.Second)
	if len(got) != 2 || got[0] < time.Minute || got[0] > time.Hour || got[1] != time.Second {
		t.Errorf("told %v", got)
	}
}

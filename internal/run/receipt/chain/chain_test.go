package chain

import (
	"testing"
	"time"
)

var epoch = time.Date(2026, 6, 11, 0, 0, 0, 0, time.UTC)

// A clock that goes back does not make a chain that goes back.
func TestClock(t *testing.T) {
	c := New("x")
	a, err := c.Append(epoch, RunCreated{})
	if err != nil {
		t.Fatal(err)
	}
	b, err := c.Append(epoch.Add(-time.Hour), RunCompleted{})
	if err != nil || b.Time != a.Time || b.Prev != a.Hash {
		t.Error(b, err)
	}
	again := Resume("x", []Entry{a, b})
	if e, err := again.Append(epoch.Add(-time.Hour), RunCompleted{}); err != nil || e.Time != a.Time || e.Seq != 2 || e.Prev != b.Hash {
		t.Error(e, err)
	}
}

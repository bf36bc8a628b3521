package daemon

import (
	"runtime/debug"
	"testing"
)

// What garbage may grow to does not depend on the lists, and a process without
// lists is left alone.
func TestPercentFor(t *testing.T) {
	const mib = 1 << 20
	for _, tt := range []struct{ percent, alive, lists, want int }{
		{100, 50 * mib, 40 * mib, 20},
		{100, 140 * mib, 40 * mib, 71},
		{200, 50 * mib, 40 * mib, 40},
		{100, 41 * mib, 40 * mib, 9},     // at least 4 MiB, as for any heap
		{100, 10 * mib, 40 * mib, 9},     // counted before the list was read
		{100, 4000 * mib, 3999 * mib, 1}, // never none, which would be no collector
	} {
		if got := percentFor(tt.percent, tt.alive, tt.lists); got != tt.want {
			t.Errorf("%d%% of %d MiB with %d MiB of lists: %d%%, want %d%%", tt.percent, tt.alive/mib, tt.lists/mib, got, tt.want)
		}
	}
}

// Spare memory is for where there is enough: not under a small limit, and not
// without a collector.
func TestSpareFor(t *testing.T) {
	const mib = 1 << 20
	for _, tt := range []struct {
		percent int
		limit   int64
		want    int
	}{
		{100, 1 << 62, spareHeap},
		{100, 256 * mib, spareHeap},
		{100, 255 * mib, 0},
		{-1, 1 << 62, 0},
	} {
		if got := spareFor(tt.percent, tt.limit); got != tt.want {
			t.Errorf("%d%%, a limit of %d: %d, want %d", tt.percent, tt.limit, got, tt.want)
		}
	}
}

// The spare goes with the first long list.
func TestSpareEndsWithLists(t *testing.T) {
	m := newMemory()
	t.Cleanup(func() { debug.SetGCPercent(m.percent) })
	m.spare = make([]byte, spareHeap)
	m.fit(fewListBytes-1, "")
	if len(m.spare) != spareHeap {
		t.Error("a short list ended it")
	}
	m.fit(fewListBytes, "a")
	if m.spare != nil {
		t.Error("a long list did not end it")
	}
}

package daemon

import "testing"

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

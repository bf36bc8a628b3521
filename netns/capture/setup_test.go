//go:build linux

package capture

import "testing"

func TestFreePort(t *testing.T) {
	all := make([]uint16, 0, 1<<16)
	for p := range 1 << 16 {
		if p != 7 {
			all = append(all, uint16(p))
		}
	}
	for _, c := range []struct {
		want, got uint16
		taken     []uint16
	}{
		{3128, 3128, nil},
		{3128, 3130, []uint16{3129, 3128}},
		{65535, 1, []uint16{65535}}, // not 0
		{3128, 7, all},
	} {
		if got := freePort(c.want, c.taken); got != c.got {
			t.Errorf("from %d: got %d, want %d", c.want, got, c.got)
		}
	}
}

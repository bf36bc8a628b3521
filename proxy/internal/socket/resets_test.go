package socket

import (
	"net/netip"
	"testing"
	"time"
)

func TestResets(t *testing.T) {
	var r Resets
	now := time.Now()
	from, to := netip.MustParseAddrPort("192.0.2.1:40000"), netip.MustParseAddrPort("198.51.100.1:443")
	r.Note(from, to, now)
	for _, tt := range []struct {
		name     string
		from, to netip.AddrPort
		after    time.Duration
		want     bool
	}{
		{"at once", from, to, 0, true},
		{"another port", netip.MustParseAddrPort("192.0.2.1:40001"), to, 0, false},
		{"another destination", from, from, 0, false},
		{"as long as the kernel remembers", from, to, resetMemory, true},
		{"later", from, to, 2 * resetMemory, false},
	} {
		if got := r.Hits(tt.from, tt.to, now.Add(tt.after)); got != tt.want {
			t.Errorf("%s: %t", tt.name, got)
		}
	}
	for i := range 3 * resetMost {
		r.Note(netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(i >> 16), 1}), uint16(i)), to, now)
	}
	if n := len(r.young) + len(r.old); n > 2*resetMost {
		t.Errorf("%d are remembered", n)
	}
	(*Resets)(nil).Note(from, to, now)
	if (*Resets)(nil).Hits(from, to, now) {
		t.Error("nil remembers")
	}
}

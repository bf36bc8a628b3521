//go:build linux

package rules

import (
	"encoding/binary"
	"net/netip"
	"testing"
)

func TestMask(t *testing.T) {
	for prefix, want := range map[string]string{
		"127.0.0.0/8": "\xff\x00\x00\x00", "224.0.0.0/4": "\xf0\x00\x00\x00",
	} {
		exprs := daddr4(prefix)
		if got := string(mask(netip.MustParsePrefix(prefix))); got != want {
			t.Errorf("%s: mask %x, want %x", prefix, got, want)
		}
		if len(exprs) != 5 {
			t.Errorf("%s: %d expressions", prefix, len(exprs))
		}
	}
	if got := bigEndian(0x1234); binary.BigEndian.Uint16(got) != 0x1234 {
		t.Errorf("port bytes %x", got)
	}
}

package socket

import (
	"net/netip"
	"testing"
)

// Threat: a range that a route of type local gives to this machine leads to a
// wildcard listener of the gate, under an address that no interface shows.
func TestComesHome(t *testing.T) {
	for addr, want := range map[string]bool{
		"127.0.0.1":  true,
		"127.9.9.9":  true, // no interface shows this one: 127.0.0.0/8 is such a route
		"192.0.2.1":  false,
		"8.8.8.8":    false,
		"2001:db8::": false,
	} {
		if got, err := comesHome(netip.MustParseAddr(addr)); got != want || err != nil {
			t.Errorf("%s: %v, %v", addr, got, err)
		}
	}
}

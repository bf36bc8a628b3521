package socket

import (
	"net/netip"
	"testing"
)

func TestReaches(t *testing.T) {
	tests := []struct {
		a    string
		own  string
		want bool
	}{
		{"127.0.0.1", "127.0.0.1:80", true},
		{"127.0.0.2", "127.0.0.1:80", false},
		{"0.0.0.0", "127.0.0.1:80", true},
		{"::", "127.0.0.1:80", true},
		{"::", "[::1]:80", true},
		{"127.0.0.2", "0.0.0.0:80", true},
		{"127.0.0.2", "[::]:80", true},
		{"::1", "[::]:80", true},
		{"93.184.216.34", "0.0.0.0:80", false},
		{"127.0.0.1", "127.0.0.1:81", false},
		{"127.0.0.1", "[::ffff:127.0.0.1]:80", true},
	}
	for _, tt := range tests {
		if got := Reaches(netip.MustParseAddr(tt.a), 80, netip.MustParseAddrPort(tt.own)); got != tt.want {
			t.Errorf("%s reaches %s: %v", tt.a, tt.own, got)
		}
	}
}

package daemon

import (
	"strings"
	"testing"
)

// Package net takes 0.0.0.0 for every address of both families; a door there is
// at those of IPv4, over TCP and over UDP.
func TestDoorAtEveryIPv4Address(t *testing.T) {
	s := socket{kind: kindDNS}
	if err := s.open(t.Context(), "0.0.0.0:0"); err != nil {
		t.Fatal(err)
	}
	defer s.close()
	for _, at := range []string{s.ln.Addr().String(), s.pc.LocalAddr().String()} {
		if !strings.HasPrefix(at, "0.0.0.0:") {
			t.Errorf("it listens at %s", at)
		}
	}
}

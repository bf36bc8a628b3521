package proxy

import (
	"testing"

	"egressd/policy"
)

// What Stats calls the most is what is in force: the descriptors of this process may
// leave room for fewer connections than the policy names.
func TestStatsTellTheLimitInForce(t *testing.T) {
	for _, tt := range []struct{ named, files, want int }{{10, 0, 10}, {10, 9468, 10}, {16384, 9468, 9468}, {16384, 0, 16384}} {
		p, err := policy.Compile(&policy.Document{Limits: policy.Limits{Connections: tt.named}})
		if err != nil {
			t.Fatal(err)
		}
		s := new(Server)
		s.Policy, s.lifecycle.files = new(policy.Current), tt.files
		s.Policy.Store(p)
		if got := s.Stats().Most; got != tt.want {
			t.Errorf("limits.connections %d, room for %d: %d in force, want %d", tt.named, tt.files, got, tt.want)
		}
	}
}

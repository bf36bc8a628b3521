package proxy

import (
	"strings"
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
		s.Policy, s.lifecycle.room.Files = new(policy.Current), tt.files
		s.Policy.Store(p)
		if got := s.Stats().Most; got != tt.want {
			t.Errorf("limits.connections %d, room for %d: %d in force, want %d", tt.named, tt.files, got, tt.want)
		}
	}
}

// One client cannot take all connections of a gate: others are served meanwhile.
func TestOneClientsShare(t *testing.T) {
	g := newGate(t, "a.example:22")
	g.Memory = 1 // byte, which leaves room for 64
	g.start()
	g.name("a.example", 22, serveOrigin(t, echo))
	for range 32 {
		c, err := openConnect(g, "a.example", 22)
		if err != nil || !pingPong(c) {
			t.Fatal(err)
		}
	}
	_, err := openConnect(g, "a.example", 22)
	if err == nil || !strings.HasPrefix(err.Error(), "HTTP/1.1 503") {
		t.Errorf("half of the connections is not the most for one client: %v", err)
	}
	if d := g.decision(32 + 1); d.Reason != "connection_limit_reached" || !strings.Contains(d.Error, "connections_per_client: 32") {
		t.Errorf("%+v", d)
	}
	if most := g.Stats().Most; most != 64 {
		t.Errorf("%d connections in force, want %d", most, 64)
	}
}

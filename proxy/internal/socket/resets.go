package socket

import (
	"net/netip"
	"sync"
	"time"
)

// Implementation constants.
const (
	// resetMemory is how long connection tracking keeps a connection that was
	// reset (net.netfilter.nf_conntrack_tcp_timeout_close).
	resetMemory = 10 * time.Second
	resetMost   = 32 << 10 // remembered a generation; of more the oldest are forgotten
)

// Resets remembers which captured connections the gate has reset. Where the gate
// shares a network namespace with its clients, connection tracking goes on
// sending what has the addresses of such a connection to the captured-TCP door
// for ten seconds: a dial of the gate's own that gets the same source port would
// arrive at the gate itself and not at the origin. The zero Resets is empty; all
// gates of one namespace share one. Safe for concurrent use.
type Resets struct {
	mu         sync.Mutex
	began      time.Time // of the young generation
	young, old map[pair]struct{}
}

// pair is a connection that was reset: its client and its destination.
type pair struct{ from, to netip.AddrPort }

// Note remembers that a connection was reset now.
func (r *Resets) Note(from, to netip.AddrPort, now time.Time) {
	if r == nil || !from.IsValid() || !to.IsValid() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.age(now)
	if len(r.young) >= resetMost {
		r.old, r.young = r.young, nil
	}
	if r.young == nil {
		r.young = make(map[pair]struct{})
	}
	r.young[pair{from, to}] = struct{}{}
}

// Hits reports whether a new connection of the gate's own leads back to it.
func (r *Resets) Hits(from, to netip.AddrPort, now time.Time) bool {
	if r == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.age(now)
	_, young := r.young[pair{from, to}]
	_, old := r.old[pair{from, to}]
	return young || old
}

// age forgets what is older than two generations.
func (r *Resets) age(now time.Time) {
	switch d := now.Sub(r.began); {
	case d >= 2*resetMemory:
		r.young, r.old, r.began = nil, nil, now
	case d >= resetMemory:
		r.young, r.old, r.began = nil, r.young, now
	}
}

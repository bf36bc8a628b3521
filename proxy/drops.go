package proxy

import (
	"fmt"
	"sync"
	"sync/atomic"

	"egressd/event"
	"egressd/policy"
)

// drops counts the connections that ended without a word, because there was no
// room for one, until they are summed up in an event.
type drops struct {
	total        atomic.Uint64
	acceptErrors atomic.Uint64

	mu    sync.Mutex
	since map[drop]uint64 // since the last event; at most one key a door and cause
}

// drop is one kind of silent end.
type drop struct {
	door event.Door
	why  string // one of the constants below
}

const (
	dropFull  = "were reset without an answer: the gate is full and busy telling others so"
	dropFiles = "were reset without an answer: the gate is out of file descriptors"
	dropQuiet = "that had said nothing were closed to make room for others"
)

func (d *drops) add(door event.Door, why string) {
	d.total.Add(1)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.since == nil {
		d.since = make(map[drop]uint64)
	}
	d.since[drop{door, why}]++
}

func (d *drops) take() map[drop]uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	since := d.since
	d.since = nil
	return since
}

// reportDrops writes one event for each kind of connection that ended without a
// word since the last time. Every sweeper calls it once a second.
func (s *Server) reportDrops() {
	for d, n := range s.drops.take() {
		ev := &event.Connection{
			Door: d.door, Verdict: event.Verdict{Reason: policy.ReasonOverload},
			Error: fmt.Sprintf("%d connections %s", n, d.why),
		}
		s.deny(ev)
	}
}

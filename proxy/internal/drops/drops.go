// Package drops counts the connections that ended without a word, because there
// was no room for one, until they are summed up in an event.
//
//	d.Add(event.DoorHTTP, drops.Full)
//	for what, n := range d.Take() { // once a second
//	}
package drops

import (
	"sync"
	"sync/atomic"

	"egressd/event"
)

// Why a connection ended without a word, as a summary says it behind a number
// and "connections".
const (
	Full  = "were reset without an answer: the gate is full and busy telling others so"
	Files = "were reset without an answer: the gate is out of file descriptors"
	Quiet = "that had said nothing were closed to make room for others"
)

// Kind is one kind of silent end.
type Kind struct {
	Door event.Door
	Why  string // one of the constants above
}

// Counter counts. The zero Counter is ready. It is safe for concurrent use.
type Counter struct {
	Total        atomic.Uint64 // written by Add
	AcceptErrors atomic.Uint64

	mu    sync.Mutex
	since map[Kind]uint64 // since the last Take; at most one key a door and cause
}

// Add counts one connection that came in at door.
func (c *Counter) Add(door event.Door, why string) {
	c.Total.Add(1)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.since == nil {
		c.since = make(map[Kind]uint64)
	}
	c.since[Kind{door, why}]++
}

// Take reports what was added since it was called last; nil: nothing.
func (c *Counter) Take() map[Kind]uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	since := c.since
	c.since = nil
	return since
}

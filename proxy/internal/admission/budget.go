package admission

import (
	"errors"
	"sync/atomic"
)

// ErrHeldTooMuch says that clients with unfinished requests hold all the memory
// that is set aside for them.
var ErrHeldTooMuch = errors.New("unfinished requests hold all the memory that is set aside for them")

// HeldBytes bounds what is held, over the first buffer of each connection, for
// clients that have not finished their first request.
const HeldBytes = 64 << 20

// Budget bounds the bytes that are held for clients over their first buffers by
// HeldBytes. The zero Budget is unused. Safe for concurrent use.
//
// Threat: clients send long heads and hellos and leave out the end, until the
// gate is out of memory -> what all of them together hold over the first 4 KiB
// each is bounded, and so is their number -> long heads are refused meanwhile;
// short ones, which nearly all are, always have room.
type Budget struct{ used atomic.Int64 }

// Take takes n bytes. False: fewer are left, and none were taken.
func (b *Budget) Take(n int) bool {
	if b.used.Add(int64(n)) > HeldBytes {
		b.used.Add(int64(-n))
		return false
	}
	return true
}

// Change takes n bytes, or gives them back if n is negative.
func (b *Budget) Change(n int) bool {
	if n < 0 {
		b.GiveBack(-n)
		return true
	}
	return b.Take(n)
}

// GiveBack returns n bytes that were taken.
func (b *Budget) GiveBack(n int) { b.used.Add(int64(-n)) }

// Used reports how many bytes are taken.
func (b *Budget) Used() int64 { return b.used.Load() }

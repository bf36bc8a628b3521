package proxy

import (
	"errors"
	"sync/atomic"
)

// errHeldTooMuch says that clients that have not said what they want hold all
// the memory that is set aside for them.
var errHeldTooMuch = errors.New("unfinished requests hold all the memory that is set aside for them")

// budget bounds the bytes that are held for clients over their first buffers.
//
// Threat: clients send long heads and hellos and leave out the end, until the
// gate is out of memory -> what all of them together hold over the first 4 KiB
// each is bounded, and so is their number -> long heads are refused meanwhile;
// short ones, which nearly all are, always have room.
type budget struct{ used atomic.Int64 }

// take takes n bytes; false: there are not so many left.
func (b *budget) take(n int) bool {
	if b == nil {
		return true
	}
	if b.used.Add(int64(n)) > heldBytes {
		b.used.Add(int64(-n))
		return false
	}
	return true
}

// change takes n bytes, or gives them back where n is negative.
func (b *budget) change(n int) bool {
	if n < 0 {
		b.giveBack(-n)
		return true
	}
	return b.take(n)
}

func (b *budget) giveBack(n int) {
	if b != nil {
		b.used.Add(int64(-n))
	}
}

// Package pool keeps byte slices for reuse, so that a connection holds a buffer
// only while bytes are in it:
//
//	var heads pool.Buffers
//	b := heads.Get(4 << 10)
//	n, err := c.Read(*b)
//	heads.Put(b, n)
package pool

import "sync"

// Buffers is a pool of byte slices of one size. The zero Buffers is empty and
// ready. Safe for concurrent use.
type Buffers struct{ pool sync.Pool }

// Get reports a slice of size bytes, all zero in what an earlier user wrote.
// Every call on one Buffers must ask for the same size.
func (b *Buffers) Get(size int) *[]byte {
	if p, ok := b.pool.Get().(*[]byte); ok {
		return p
	}
	p := make([]byte, size)
	return &p
}

// Put gives p back, of which the first used bytes were written.
//
// Threat: a mistake elsewhere sends more of a buffer than was read into it, and
// so one client's bytes to another -> the used bytes are cleared here. Left
// over: what is written behind used.
func (b *Buffers) Put(p *[]byte, used int) {
	clear((*p)[:used])
	b.pool.Put(p)
}

package vfs

import (
	"io"
	"math"
	"sync"
	"syscall"
	"time"
)

const chunk = 32 << 10

// content is what a file in memory holds: chunks, and below them the file on
// the lower disk, up to where it was not cut.
type content struct {
	size   int64
	below  int64 // bytes from the start that base has, where no chunk is
	base   handle
	chunks map[int64][]byte // by number; shorter than chunk: zeros follow
	taken  int64
}

func (c *content) closeBase() {
	if c.base != nil {
		_ = c.base.close()
		c.base = nil
	}
}

// drop forgets all, and reports how much memory that gives back.
func (c *content) drop() int64 {
	n := c.taken
	*c = content{base: c.base, size: c.size}
	return n
}

func (c *content) pread(p []byte, off int64) (int, error) {
	if off >= c.size {
		return 0, nil
	}
	i, at := off/chunk, int(off%chunk)
	p = p[:min(int64(len(p)), c.size-off, chunk-int64(at))]
	if b, ok := c.chunks[i]; ok {
		n := 0
		if at < len(b) {
			n = copy(p, b[at:])
		}
		clear(p[n:])
		return len(p), nil
	}
	clear(p)
	if c.base != nil && off < c.below {
		if err := c.fill(p[:min(int64(len(p)), c.below-off)], off); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

// fill reads from below; what is missing there stays zero.
func (c *content) fill(p []byte, off int64) error {
	for len(p) > 0 {
		n, err := c.base.pread(p, off)
		if err != nil || n == 0 {
			return err
		}
		p, off = p[n:], off+int64(n)
	}
	return nil
}

// own is chunk i with at least n bytes, in memory.
func (c *content) own(i int64, n int, r *room) ([]byte, error) {
	b, ok := c.chunks[i]
	if !ok && i*chunk < c.below {
		n = max(n, int(min(chunk, c.below-i*chunk)))
	}
	if len(b) >= n {
		return b, nil
	}
	if cap(b) < n {
		// Grow in steps: many small appends are one copy each time it doubles.
		size := min(chunk, max(n, 2*cap(b), 256))
		if err := r.take(int64(size - cap(b))); err != nil {
			return nil, err
		}
		c.taken += int64(size - cap(b))
		b = append(make([]byte, 0, size), b...)
	}
	old := len(b)
	b = b[:n]
	clear(b[old:])
	if !ok && i*chunk < c.below && c.base != nil {
		if err := c.fill(b[:min(chunk, c.below-i*chunk)], i*chunk); err != nil {
			return nil, err
		}
	}
	if c.chunks == nil {
		c.chunks = map[int64][]byte{}
	}
	c.chunks[i] = b
	return b, nil
}

func (c *content) pwrite(p []byte, off int64, r *room) (int, error) {
	all := 0
	for len(p) > 0 {
		i, at := off/chunk, int(off%chunk)
		n := min(len(p), chunk-at)
		b, err := c.own(i, at+n, r)
		if err != nil {
			return all, err
		}
		copy(b[at:], p[:n])
		p, off, all = p[n:], off+int64(n), all+n
		c.size = max(c.size, off)
	}
	return all, nil
}

func (c *content) truncate(size int64, r *room) {
	if size < c.size {
		for i, b := range c.chunks {
			keep := size - i*chunk
			switch {
			case keep <= 0:
				c.taken -= int64(cap(b))
				_ = r.take(-int64(cap(b)))
				delete(c.chunks, i)
			case keep < int64(len(b)):
				c.chunks[i] = b[:keep]
			}
		}
		c.below = min(c.below, size)
	}
	c.size = size
}

// memFile is an open file of a mem. Its position is its own; all the rest is
// the tree's.
type memFile struct {
	t      *mem
	n      *node
	append bool

	once sync.Once
	pos  int64 // guarded by the tree
}

func (h *memFile) read(p []byte) (int, error) {
	h.t.mu.Lock()
	defer h.t.mu.Unlock()
	n, err := h.n.data.pread(p, h.pos)
	h.pos += int64(n)
	return n, err
}

func (h *memFile) pread(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, syscall.EINVAL
	}
	h.t.mu.Lock()
	defer h.t.mu.Unlock()
	return h.n.data.pread(p, off)
}

func (h *memFile) write(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	h.t.mu.Lock()
	defer h.t.mu.Unlock()
	if h.append {
		h.pos = h.n.data.size
	}
	if h.pos > math.MaxInt64-int64(len(p)) {
		return 0, syscall.EFBIG
	}
	if err := h.t.claim(h.n); err != nil {
		return 0, err
	}
	n, err := h.n.data.pwrite(p, h.pos, h.t.room)
	h.pos += int64(n)
	h.changed()
	return n, err
}

func (h *memFile) changed() {
	h.n.attr.Mtime = time.Now()
	h.n.attr.Ctime = h.n.attr.Mtime
}

func (h *memFile) seek(off int64, whence int) (int64, error) {
	h.t.mu.Lock()
	defer h.t.mu.Unlock()
	switch whence {
	case io.SeekStart:
	case io.SeekCurrent:
		off += h.pos
	case io.SeekEnd:
		off += h.n.data.size
	default:
		return 0, syscall.EINVAL
	}
	if off < 0 {
		return 0, syscall.EINVAL
	}
	h.pos = off
	return off, nil
}

func (h *memFile) stat() (*Attr, error) {
	h.t.mu.Lock()
	defer h.t.mu.Unlock()
	return h.n.shown(), nil
}

func (h *memFile) truncate(size int64) error {
	h.t.mu.Lock()
	defer h.t.mu.Unlock()
	return h.truncate0(size)
}

// truncate0 is truncate for who holds the tree.
func (h *memFile) truncate0(size int64) error {
	if err := h.t.claim(h.n); err != nil {
		return err
	}
	h.n.data.truncate(size, h.t.room)
	h.changed()
	return nil
}

func (h *memFile) close() error {
	err := error(syscall.EBADF)
	h.once.Do(func() {
		h.t.mu.Lock()
		defer h.t.mu.Unlock()
		h.t.let(h.n)
		err = nil
	})
	return err
}

package stream

import (
	"context"
	"io"
	"sync"
	"syscall"
)

// pipeSize is how many bytes a pipe holds, as in Linux.
const pipeSize = 64 << 10

// pipe is pipe(2) in memory.
type pipe struct {
	mu      sync.Mutex
	buf     []byte
	readers int // open ends
	writers int
	wake    chan struct{} // closed and replaced at every change
}

func (p *pipe) changed() {
	close(p.wake)
	p.wake = make(chan struct{})
}

// wait releases the lock until something changes. The error is that of the
// context.
func (p *pipe) wait(ctx context.Context) error {
	wake := p.wake
	p.mu.Unlock()
	defer p.mu.Lock()
	select {
	case <-wake:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (p *pipe) read(ctx context.Context, b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.buf) == 0 {
		if p.writers == 0 {
			return 0, io.EOF
		}
		if err := p.wait(ctx); err != nil {
			return 0, err
		}
	}
	n := copy(b, p.buf)
	if p.buf = p.buf[n:]; len(p.buf) == 0 {
		p.buf = nil
	}
	p.changed()
	return n, nil
}

func (p *pipe) write(ctx context.Context, b []byte) (n int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(b) > 0 {
		if p.readers == 0 {
			return n, syscall.EPIPE
		}
		if room := pipeSize - len(p.buf); room > 0 {
			k := min(room, len(b))
			p.buf = append(p.buf, b[:k]...)
			b, n = b[k:], n+k
			p.changed()
			continue
		}
		if err := p.wait(ctx); err != nil {
			return n, err
		}
	}
	return n, nil
}

func (p *pipe) closed(reader bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if reader {
		p.readers--
	} else {
		p.writers--
	}
	p.changed()
}

// Pipe makes a pipe. Each end is closed by its owner.
func Pipe() (r, w *File) {
	p := &pipe{readers: 1, writers: 1, wake: make(chan struct{})}
	r = &File{name: "pipe", read: p.read, Kind: IsPipe, close: func() error { p.closed(true); return nil }}
	w = &File{name: "pipe", write: p.write, Kind: IsPipe, close: func() error { p.closed(false); return nil }}
	r.refs.Store(1)
	w.refs.Store(1)
	return r, w
}

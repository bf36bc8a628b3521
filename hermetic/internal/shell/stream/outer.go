package stream

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"sync"
	"time"
)

// Writer makes a File that writes to w. It calls count with the number of bytes
// before each write; an error refuses the write. Writers with the same mu take
// turns. The context of a write is ignored: the launcher bounds w. If w has
// Stat, so has the File.
func Writer(w io.Writer, mu *sync.Mutex, count func(n int64) error) *File {
	f := &File{name: "output", Kind: IsOuter, write: func(_ context.Context, b []byte) (int, error) {
		if count != nil {
			if err := count(int64(len(b))); err != nil {
				return 0, err
			}
		}
		mu.Lock()
		defer mu.Unlock()
		return w.Write(b)
	}}
	if s, ok := w.(interface{ Stat() (fs.FileInfo, error) }); ok {
		f.stat = func() (fs.FileInfo, error) { return outerStat(s.Stat()) }
	}
	f.refs.Store(1)
	return f
}

// AsTerminal marks f as a terminal.
func (f *File) AsTerminal() *File {
	f.tty = true
	return f
}

// Reader makes a File that reads r, which stays open; nil is empty. A regular
// file can be sought, and shares its offset with everyone who has it open. A
// read that waits ends with its context, if need be by leaving a goroutine
// behind that ends with the next byte of r.
func Reader(r *os.File) *File {
	f := &File{name: "input", Kind: IsOuter}
	f.refs.Store(1)
	if r == nil {
		f.read = func(context.Context, []byte) (int, error) { return 0, io.EOF }
		f.stat = func() (fs.FileInfo, error) { return nullInfo{}, nil }
		return f
	}
	f.stat = func() (fs.FileInfo, error) { return outerStat(r.Stat()) }
	if info, err := r.Stat(); err == nil && info.Mode().IsRegular() {
		f.read = func(_ context.Context, b []byte) (int, error) { return r.Read(b) }
		f.seek, f.at = r.Seek, r.ReadAt
		return f
	}
	if r.SetReadDeadline(time.Time{}) == nil {
		f.read = withDeadline(r)
		return f
	}
	p := &pump{from: r}
	f.read = p.read
	return f
}

func withDeadline(r *os.File) func(context.Context, []byte) (int, error) {
	var mu sync.Mutex
	return func(ctx context.Context, b []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		stop := context.AfterFunc(ctx, func() { r.SetReadDeadline(time.Unix(1, 0)) })
		n, err := r.Read(b)
		if !stop() {
			r.SetReadDeadline(time.Time{})
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return n, context.Cause(ctx)
		}
		return n, err
	}
}

// pump reads a file whose reads cannot be interrupted: one goroutine waits in
// the read, and what it reads is kept for the next caller.
type pump struct {
	from *os.File
	mu   sync.Mutex
	got  []byte
	err  error
	busy chan struct{} // closed when the current read is done
}

func (p *pump) read(ctx context.Context, b []byte) (int, error) {
	for {
		p.mu.Lock()
		if len(p.got) > 0 {
			n := copy(b, p.got)
			p.got = p.got[n:]
			p.mu.Unlock()
			return n, nil
		}
		if p.err != nil {
			p.mu.Unlock()
			return 0, p.err
		}
		if p.busy == nil {
			p.busy = make(chan struct{})
			go p.fill(p.busy)
		}
		busy := p.busy
		p.mu.Unlock()
		select {
		case <-busy:
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
}

func (p *pump) fill(done chan struct{}) {
	b := make([]byte, 32<<10)
	n, err := p.from.Read(b)
	p.mu.Lock()
	p.got, p.err, p.busy = b[:n], err, nil
	p.mu.Unlock()
	close(done)
}

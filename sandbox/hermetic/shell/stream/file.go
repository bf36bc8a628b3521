// Package stream is what descriptors of a hermetic shell refer to: files of
// the session, pipes in memory and the worker's own three streams. Reads and
// writes that wait end with the context they are made under.
package stream

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"egressd/sandbox/hermetic/vfs"
)

// Kind says what a File is made of.
type Kind byte

// What a File is made of.
const (
	IsFile Kind = iota
	IsPipe
	IsOuter // one of the worker's own streams
)

// File is an open file description: what descriptors that were duplicated
// share. Safe for concurrent use.
type File struct {
	Kind  Kind
	name  string
	read  func(ctx context.Context, b []byte) (int, error)
	write func(ctx context.Context, b []byte) (int, error)
	close func() error
	under vfs.File
	refs  atomic.Int64
}

// Name is the path it was opened by.
func (f *File) Name() string { return f.name }

// Under is the file below; nil for pipes and outer streams.
func (f *File) Under() vfs.File { return f.under }

// CanRead and CanWrite report the mode.
func (f *File) CanRead() bool { return f.read != nil }

// CanWrite reports whether the file is open for writing.
func (f *File) CanWrite() bool { return f.write != nil }

// Dup adds one owner.
func (f *File) Dup() *File {
	f.refs.Add(1)
	return f
}

// Close takes one owner away; the last one closes.
func (f *File) Close() error {
	if f.refs.Add(-1) != 0 || f.close == nil {
		return nil
	}
	return f.close()
}

// Of makes a File of an open vfs file, which it will close.
func Of(under vfs.File, canRead, canWrite bool) *File {
	f := &File{name: under.Name(), under: under, close: under.Close}
	f.refs.Store(1)
	if canRead {
		f.read = func(_ context.Context, b []byte) (int, error) { return under.Read(b) }
	}
	if canWrite {
		f.write = func(_ context.Context, b []byte) (int, error) { return under.Write(b) }
	}
	return f
}

// Text makes a File that reads s: a here-document.
func Text(s string) *File {
	var mu sync.Mutex
	f := &File{name: "here-document", Kind: IsPipe, read: func(_ context.Context, b []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		if len(s) == 0 && len(b) > 0 {
			return 0, io.EOF
		}
		n := copy(b, s)
		s = s[n:]
		return n, nil
	}}
	f.refs.Store(1)
	return f
}

// Writer makes a File that writes to w, told of every n bytes before; its error
// refuses them. Writers with the same mu take turns. ctx is not looked at: w
// is the launcher's to bound.
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
	f.refs.Store(1)
	return f
}

// Reader makes a File that reads r, which stays open. A read that waits ends
// with its context, if need be by leaving the wait to a goroutine that ends
// with r's next byte.
func Reader(r *os.File) *File {
	f := &File{name: "input", Kind: IsOuter}
	f.refs.Store(1)
	if r == nil {
		f.read = func(context.Context, []byte) (int, error) { return 0, io.EOF }
		return f
	}
	if info, err := r.Stat(); err == nil && info.Mode().IsRegular() {
		f.read = func(_ context.Context, b []byte) (int, error) { return r.Read(b) }
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
// the read, and what it got is kept for the next who asks.
type pump struct {
	from *os.File
	mu   sync.Mutex
	got  []byte
	err  error
	busy chan struct{} // closed when the read under way is done
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

// Bound is a File under a context, as a command gets it.
type Bound struct {
	Ctx  context.Context //nolint:containedctx // io.Reader has no other place for it
	File *File
}

// Read reads; a File that is not open for reading reports EBADF.
func (b Bound) Read(p []byte) (int, error) {
	if b.File == nil || b.File.read == nil {
		return 0, syscall.EBADF
	}
	if err := b.Ctx.Err(); err != nil {
		return 0, context.Cause(b.Ctx)
	}
	return b.File.read(b.Ctx, p)
}

// Write writes; a File that is not open for writing reports EBADF.
func (b Bound) Write(p []byte) (int, error) {
	if b.File == nil || b.File.write == nil {
		return 0, syscall.EBADF
	}
	if err := b.Ctx.Err(); err != nil {
		return 0, context.Cause(b.Ctx)
	}
	return b.File.write(b.Ctx, p)
}

// From makes a File of a command's streams, which stay open: of a Bound the
// File below it, with one owner more.
func From(r io.Reader, w io.Writer) *File {
	if b, ok := r.(Bound); ok {
		return b.File
	}
	if b, ok := w.(Bound); ok {
		return b.File
	}
	f := &File{name: "pipe", Kind: IsPipe}
	f.refs.Store(1)
	if r != nil {
		f.read = func(_ context.Context, b []byte) (int, error) { return r.Read(b) }
	}
	if w != nil {
		f.write = func(_ context.Context, b []byte) (int, error) { return w.Write(b) }
	}
	return f
}

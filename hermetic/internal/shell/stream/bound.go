package stream

import (
	"context"
	"io"
	"io/fs"
	"syscall"
)

// Bound is a File with a context that ends its reads and writes.
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

// Seek sets the offset, which all owners share. Pipes return ESPIPE, as lseek
// does.
func (b Bound) Seek(offset int64, whence int) (int64, error) {
	switch {
	case b.File == nil:
		return 0, syscall.EBADF
	case b.File.seek == nil:
		return 0, syscall.ESPIPE
	}
	return b.File.seek(offset, whence)
}

// Stat describes the file as fstat does.
func (b Bound) Stat() (fs.FileInfo, error) {
	switch {
	case b.File == nil:
		return nil, syscall.EBADF
	case b.File.stat == nil:
		return pipeInfo{}, nil
	}
	return b.File.stat()
}

// Terminal reports whether the file is a terminal.
func (b Bound) Terminal() bool { return b.File != nil && b.File.tty }

// From makes a File of the streams of a command, which stay open. Of a Bound it
// is the File, with one more owner.
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

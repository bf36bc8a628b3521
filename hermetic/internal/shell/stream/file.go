// Package stream is what descriptors of a hermetic shell refer to: files of
// the session, pipes in memory and the worker's own three streams. Reads and
// writes that wait end with the context they are made under.
package stream

import (
	"context"
	"io"
	"io/fs"
	"sync"
	"sync/atomic"

	"egressd/hermetic/vfs"
)

// Kind says what a File is.
type Kind byte

// The kinds of a File.
const (
	IsFile Kind = iota
	IsPipe
	IsOuter // a stream of the worker
)

// File is an open file description, which duplicated descriptors share. It is
// safe for concurrent use.
type File struct {
	Kind  Kind
	name  string
	read  func(ctx context.Context, b []byte) (int, error)
	write func(ctx context.Context, b []byte) (int, error)
	close func() error
	seek  func(offset int64, whence int) (int64, error)
	at    func(b []byte, offset int64) (int, error)
	stat  func() (fs.FileInfo, error)
	tty   bool
	under vfs.File
	refs  atomic.Int64
}

// Name is the path that it was opened by.
func (f *File) Name() string { return f.name }

// Under is the file below; nil for pipes and outer streams.
func (f *File) Under() vfs.File { return f.under }

// CanRead reports whether the file is open for reading.
func (f *File) CanRead() bool { return f.read != nil }

// CanWrite reports whether the file is open for writing.
func (f *File) CanWrite() bool { return f.write != nil }

// Terminal reports whether the file is a terminal.
func (f *File) Terminal() bool { return f.tty }

// Dup adds one owner.
func (f *File) Dup() *File {
	f.refs.Add(1)
	return f
}

// Close removes one owner. The last one closes the file.
func (f *File) Close() error {
	if f.refs.Add(-1) != 0 || f.close == nil {
		return nil
	}
	return f.close()
}

// Of makes a File of an open vfs file. The File closes it.
func Of(under vfs.File, canRead, canWrite bool) *File {
	f := &File{name: under.Name(), under: under, close: under.Close, seek: under.Seek, at: under.ReadAt, stat: under.Stat}
	f.refs.Store(1)
	if canRead {
		f.read = func(_ context.Context, b []byte) (int, error) { return under.Read(b) }
	}
	if canWrite {
		f.write = func(_ context.Context, b []byte) (int, error) { return under.Write(b) }
	}
	return f
}

// Text makes a File to read s from: a here-document.
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

package stage

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
)

// Open opens a regular file of the tree for sending. What is read is what is
// remembered as sent, at most the size that was scanned. A file that has become
// shorter is an error, so that a sender that announced its size can stop.
func (t *Tree) Open(name string) (io.ReadCloser, error) {
	e := t.entries[name]
	if e == nil || e.shared || !e.Mode.IsRegular() {
		return nil, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
	}
	f, err := openRegular(t.root, name)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, err
	}
	if info.Size() < e.Size {
		f.Close()
		return nil, fmt.Errorf("%s became shorter while it was sent: try again", name)
	}
	e.sent = false
	s := &sending{entry: e, file: f, left: e.Size, sum: sha256.New()}
	s.done()
	return s, nil
}

// openRegular opens a file for reading, and no FIFO or device that has taken
// its place.
func openRegular(root *os.Root, name string) (*os.File, error) {
	f, err := root.OpenFile(name, openRead, 0)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		f.Close()
		return nil, errors.Join(err, fmt.Errorf("%s is no regular file", name))
	}
	return f, nil
}

// sending is one file on its way.
type sending struct {
	entry *Entry
	file  *os.File
	left  int64
	sum   hash.Hash
}

func (s *sending) Read(b []byte) (int, error) {
	if s.left == 0 {
		return 0, io.EOF
	}
	n, err := s.file.Read(b[:min(int64(len(b)), s.left)])
	s.left -= int64(n)
	s.sum.Write(b[:n])
	s.done()
	if errors.Is(err, io.EOF) && s.left > 0 {
		err = fmt.Errorf("%s became shorter while it was sent: %w", s.entry.Path, io.ErrUnexpectedEOF)
	}
	return n, err
}

// done notes that the whole file was read.
func (s *sending) done() {
	if s.left == 0 {
		s.sum.Sum(s.entry.sum[:0])
		s.entry.sent = true
	}
}

// Close ends the reading. A file that was not read to its end counts as not
// sent: nothing that comes back replaces it.
func (s *sending) Close() error { return s.file.Close() }

package socket

import (
	"errors"
	"os"
	"syscall"
)

// OutOfFiles reports whether err says that there are no descriptors left.
func OutOfFiles(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// SpareFile is a descriptor kept for the time when there are no others: with
// it, a connection can be accepted to be refused. The zero
// SpareFile holds none. One goroutine uses it and closes it.
type SpareFile struct{ f *os.File }

// Open makes sure of the spare descriptor; false: there is none to be had.
func (s *SpareFile) Open() bool {
	if s.f != nil {
		return true
	}
	f, err := os.Open(os.DevNull)
	if err != nil && !OutOfFiles(err) {
		return true // this system has no such file: do without
	}
	s.f = f
	return err == nil
}

// Close gives the descriptor back. Open takes one again.
func (s *SpareFile) Close() {
	if s.f != nil {
		_ = s.f.Close() // nothing was written
		s.f = nil
	}
}

package proxy

import (
	"errors"
	"os"
	"syscall"
	"time"
)

// evictForFiles is how many connections without a request make room at a time
// when the process is out of descriptors.
const evictForFiles = 16

// noFiles reports whether err says that there are no descriptors left.
func noFiles(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// freeFiles gives back the descriptors that s can do without.
func (s *Server) freeFiles() {
	s.engine.Trim()
	s.closeIdleUpstreams()
	s.admitted.EvictSome(evictForFiles, time.Now())
}

// spareFile is a descriptor kept for the time when there are no others: with
// it, a connection can be accepted to be refused. One goroutine uses it.
type spareFile struct{ f *os.File }

// open makes sure of the spare descriptor; false: there is none to be had.
func (s *spareFile) open() bool {
	if s.f != nil {
		return true
	}
	f, err := os.Open(os.DevNull)
	if err != nil && !noFiles(err) {
		return true // this system has no such file: do without
	}
	s.f = f
	return err == nil
}

func (s *spareFile) close() {
	if s.f != nil {
		_ = s.f.Close() // nothing was written
		s.f = nil
	}
}

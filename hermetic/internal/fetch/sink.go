package fetch

import (
	"errors"
	"io"
	"syscall"
)

// ErrPipe is a standard output that nobody reads any more.
var ErrPipe = errors.New("broken pipe")

// StatusPipe is how a process ends that SIGPIPE killed.
const StatusPipe = 141

// Sink is the standard output: it remembers that writing failed.
type Sink struct {
	W   io.Writer
	Err error
}

func (s *Sink) Write(b []byte) (int, error) {
	n, err := s.W.Write(b)
	if err != nil {
		s.Err = err
		if errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrClosedPipe) {
			s.Err = ErrPipe
		}
	}
	return n, err
}

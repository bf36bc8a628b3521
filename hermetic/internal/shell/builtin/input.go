package builtin

import (
	"io"

	"egressd/hermetic/internal/shell/state"
	"egressd/hermetic/internal/shell/stream"
)

// input reads a descriptor and consumes no more than was asked for: a file is
// read in blocks and its offset set back, anything else is read byte by byte.
type input struct {
	in    stream.Bound
	piece []byte
	back  bool
}

func newInput(sh *state.Shell, n int) *input {
	s := &input{in: sh.Stream(n)}
	_, err := s.in.Seek(0, io.SeekCurrent)
	s.back = err == nil
	return s
}

func (s *input) next() (byte, error) {
	if len(s.piece) == 0 {
		size := 1
		if s.back {
			size = 4096
		}
		b := make([]byte, size)
		n, err := s.in.Read(b)
		if n == 0 {
			if err == nil {
				err = io.EOF
			}
			return 0, err
		}
		s.piece = b[:n]
	}
	c := s.piece[0]
	s.piece = s.piece[1:]
	return c, nil
}

// done sets the offset back to what was consumed.
func (s *input) done() {
	if s.back && len(s.piece) > 0 {
		s.in.Seek(-int64(len(s.piece)), io.SeekCurrent) //nolint:errcheck // it could before
	}
}

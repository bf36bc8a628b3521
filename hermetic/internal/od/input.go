package od

import (
	"errors"
	"io"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
)

// input is all operands as one stream of bytes, of which a part is shown.
type input struct {
	w      *gnu.Work
	names  []string
	open   io.ReadCloser
	opened bool  // one at least
	left   int64 // bytes still to be read; -1: all
	quote  func(string) string
}

func newInput(w *gnu.Work, operands []string, skip, limit int64) *input {
	if len(operands) == 0 {
		operands = []string{"-"}
	}
	in := &input{w: w, names: operands, left: -1, quote: gnu.QuoteName}
	if skip > 0 {
		_, _ = io.CopyN(io.Discard, in, skip)
	}
	in.left = limit
	return in
}

func (in *input) Close() error {
	if in.open != nil {
		_ = in.open.Close()
		in.open = nil
	}
	return nil
}

func (in *input) Read(p []byte) (int, error) {
	if in.left == 0 {
		return 0, io.EOF
	}
	if in.left > 0 && int64(len(p)) > in.left {
		p = p[:in.left]
	}
	for {
		if in.open == nil {
			if len(in.names) == 0 {
				return 0, io.EOF
			}
			name := in.names[0]
			r, err := in.w.Open(name)
			if err != nil {
				in.names = in.names[1:]
				in.w.Fault("%s: %s", in.quote(name), command.Reason(err))
				continue
			}
			in.open, in.opened = r, true
		}
		n, err := in.open.Read(p)
		if in.left > 0 {
			in.left -= int64(n)
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				if in.w.Ctx.Err() != nil {
					return n, err
				}
				in.w.Fault("%s: %s", in.quote(in.names[0]), command.Reason(err))
			}
			in.names = in.names[1:]
			_ = in.Close()
		}
		if n > 0 || err == nil {
			return n, nil
		}
	}
}

// blocks calls f with blocks of size bytes, the last of which may be shorter;
// it stops when f reports false.
func blocks(r io.Reader, size int, f func([]byte) bool) {
	buf := make([]byte, size)
	for {
		n, err := io.ReadFull(r, buf)
		if n > 0 && !f(buf[:n]) || err != nil {
			return
		}
	}
}

// show is c where it is a printable ASCII character, and a dot elsewhere.
func show(c byte) byte {
	if c < 0x20 || c > 0x7e {
		return '.'
	}
	return c
}

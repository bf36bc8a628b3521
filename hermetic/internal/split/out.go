package split

import (
	"fmt"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
)

// name is that of the next file. Without -a the suffix grows: after "yz" comes
// "zaaa", so that the names sort.
func (s *splitter) name() (string, bool) {
	n, base := s.files+s.start, int64(len(s.digits))
	length, lead := s.length, ""
	if !s.fixed && s.mode != 'n' && s.start == 0 {
		for room := pow(base, length) / base * (base - 1); n >= room; room = pow(base, length) / base * (base - 1) {
			n -= room
			lead += s.digits[base-1:]
			length++
		}
	}
	if n >= pow(base, length) {
		return "", false
	}
	text := make([]byte, length)
	for i := length - 1; i >= 0; i-- {
		text[i] = s.digits[n%base]
		n /= base
	}
	return s.prefix + lead + string(text) + s.suffix, true
}

func (s *splitter) open(w *gnu.Work) error {
	name, ok := s.name()
	if !ok {
		w.Die(1, "output file suffixes exhausted")
		return errSplit
	}
	s.files++
	if s.out != nil {
		_ = s.out.Close()
		s.out = nil
	}
	if s.verbose {
		fmt.Fprintf(w.Out, "creating file %s\n", gnu.QuoteShell(name))
	}
	out, err := w.Create(name, false)
	if err != nil {
		w.Die(1, "%s: %s", gnu.QuoteName(name), command.Reason(err))
		return errSplit
	}
	s.out = out
	return nil
}

func (s *splitter) write(w *gnu.Work, b []byte) error {
	if _, err := s.out.Write(b); err != nil {
		w.Die(1, "%s", command.Reason(err))
		return errSplit
	}
	return w.Ctx.Err()
}

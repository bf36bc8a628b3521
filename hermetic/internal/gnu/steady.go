package gnu

import "io"

// Steady reads r until the call's context ends, and counts the work: for archives
// and what is compressed.
//
// Threat: a small archive unpacks to more than there is -> what is written to
// files and to the output counts against the budget as everything else, and
// what is only looked through counts as steps. Left over: none.
func (w *Work) Steady(r io.Reader) io.Reader { return &steady{w, r} }

type steady struct {
	w *Work
	r io.Reader
}

// Pour copies r to w. A bufio.Writer that reads by itself would take an error of
// r for one of its own.
func Pour(w io.Writer, r io.Reader) error {
	_, err := io.Copy(struct{ io.Writer }{w}, r)
	return err
}

func (s *steady) Read(p []byte) (int, error) {
	if err := s.w.Ctx.Err(); err != nil {
		return 0, err
	}
	n, err := s.r.Read(p)
	if serr := s.w.Budget.Steps(int64(n)/256 + 1); serr != nil {
		return 0, serr
	}
	return n, err
}

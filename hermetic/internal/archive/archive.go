// Package archive is tar, gzip and their kin for the hermetic shell.
package archive

import (
	"context"
	"io"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
)

// Commands are the commands of this room.
func Commands() command.Table {
	return command.Table{
		"tar":    run(tarCommand, 2),
		"gzip":   run(gzipCommand, 1),
		"gunzip": run(gzipCommand, 1),
		"zcat":   run(gzipCommand, 1),
	}
}

func run(f func(w *gnu.Work), usage int) command.Func {
	return func(ctx context.Context, c *command.Call) int {
		w := gnu.Begin(ctx, c)
		w.Usage = usage
		f(w)
		return w.End()
	}
}

// steady is a reader that ends with the call's context, and counts its work.
//
// Threat: a small archive unpacks to more than there is -> what is written to
// files and to the output counts against the budget as everything else, and
// what is only looked through counts as steps. Left over: none.
type steady struct {
	w *gnu.Work
	r io.Reader
}

// pour copies r to w. A bufio.Writer that reads by itself would take an error of
// r for one of its own.
func pour(w io.Writer, r io.Reader) error {
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

// Package compare is diff, cmp and patch of the hermetic shell.
package compare

import (
	"context"
	"errors"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
)

// Commands are the commands of this room.
func Commands() command.Table {
	return command.Table{
		"diff":  run(diff),
		"cmp":   run(cmp),
		"patch": run(patch),
	}
}

func run(f func(w *gnu.Work)) command.Func {
	return func(ctx context.Context, c *command.Call) int {
		w := gnu.Begin(ctx, c)
		w.Usage = 2
		f(w)
		return w.End()
	}
}

// trouble is an error that ends a tool, and whose text is written as it is.
type trouble string

func (t trouble) Error() string { return string(t) }

// reason is what is wrong, for a message after a file's name.
func reason(err error) string {
	if errors.Is(err, gnu.ErrMemory) {
		return gnu.ErrMemory.Error()
	}
	return command.Reason(err)
}

// tryHelp complains of the usage as diffutils do.
func tryHelp(w *gnu.Work, format string, args ...any) {
	w.Complain(format, args...)
	w.Complain("Try '%s --help' for more information.", w.Args[0])
	w.Status = 2
}

// options is w.Options with the error texts of diffutils.
func options(w *gnu.Work, usage, spec string) (sets []command.Set, operands []string, ok bool) {
	quiet := *w.Call
	var said message
	quiet.Stderr = &said
	call := w.Call
	w.Call = &quiet
	sets, operands, ok = w.Options(usage, spec)
	w.Call = call
	if said.first != "" {
		w.Complain("%s", said.first)
		w.Complain("Try '%s --help' for more information.", w.Args[0])
	}
	return sets, operands, ok
}

// message keeps the first line that is written to it, without the name.
type message struct{ first string }

func (m *message) Write(p []byte) (int, error) {
	if m.first == "" {
		m.first = firstLine(string(p))
	}
	return len(p), nil
}

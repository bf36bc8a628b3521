package diff

import (
	"errors"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
)

// Trouble is an error that ends a tool, and whose text is written as it is.
type Trouble string

func (t Trouble) Error() string { return string(t) }

// Reason is what is wrong, for a message after a file's name.
func Reason(err error) string {
	if errors.Is(err, gnu.ErrMemory) {
		return gnu.ErrMemory.Error()
	}
	return command.Reason(err)
}

// TryHelp complains of the usage as diffutils do.
func TryHelp(w *gnu.Work, format string, args ...any) {
	w.Complain(format, args...)
	w.Complain("Try '%s --help' for more information.", w.Args[0])
	w.Status = 2
}

// Options is w.Options with the error texts of diffutils.
func Options(w *gnu.Work, usage, spec string) (sets []command.Set, operands []string, ok bool) {
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

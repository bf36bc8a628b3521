// Package gnu is what the GNU tools have in common: how they take options,
// quote names in messages, read records and numbers, and end.
package gnu

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"

	"egressd/hermetic/command"
)

// Work is one call of a tool with a buffered standard output. Not safe for
// concurrent use.
type Work struct {
	*command.Call
	Ctx    context.Context
	Out    *bufio.Writer
	Status int // what End reports
	Usage  int // status of a mistake in the options; 1
}

// Begin makes the Work of one call; End ends it.
func Begin(ctx context.Context, c *command.Call) *Work {
	return &Work{Call: c, Ctx: ctx, Out: bufio.NewWriterSize(c.Stdout, 32<<10), Usage: 1}
}

// Tool makes a command of f, which writes to a buffered output. Mistakes in the
// options end with 1.
func Tool(f func(*Work)) command.Func { return ToolWith(1, f) }

// ToolWith is Tool for a command that reports mistakes in the options by the
// status usage.
func ToolWith(usage int, f func(*Work)) command.Func {
	return func(ctx context.Context, c *command.Call) int {
		w := Begin(ctx, c)
		w.Usage = usage
		f(w)
		return w.End()
	}
}

// Complain flushes the output, so that it comes first as error(3) has it, and
// writes a message. It leaves Status.
func (w *Work) Complain(format string, args ...any) {
	_ = w.Out.Flush()
	w.Errorf(format, args...)
}

// Fault is Complain, and makes Status at least 1.
func (w *Work) Fault(format string, args ...any) {
	w.Complain(format, args...)
	w.Status = max(w.Status, 1)
}

// Die is Complain, and reports status after the output is flushed.
func (w *Work) Die(status int, format string, args ...any) int {
	w.Complain(format, args...)
	w.Status = status
	return status
}

// TryHelp is Die with the line that points to --help after it.
func (w *Work) TryHelp(format string, args ...any) int {
	_ = w.Out.Flush()
	w.Status = w.BadUsage(w.Usage, fmt.Errorf(format, args...))
	return w.Status
}

// Extra complains of the first operand after the most that the tool takes.
func (w *Work) Extra(operands []string, most int) bool {
	if len(operands) <= most {
		return false
	}
	w.TryHelp("extra operand %s", Quote(operands[most]))
	return true
}

// End flushes the output and reports the status: a reader that has gone away
// is 141, as SIGPIPE's; another write error is a message and the usage status.
func (w *Work) End() int {
	err := w.Out.Flush()
	switch {
	case err == nil:
		return w.Status
	case errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrClosedPipe):
		return 141
	case w.Ctx.Err() != nil:
		return max(w.Status, w.Usage)
	}
	w.Errorf("write error: %s", command.Reason(err))
	return max(w.Status, w.Usage)
}

// Options reads the options that spec names, each "n", "n,lines" or ",lines",
// with ":" after it when it has a value and "::" when only a glued one. ok is
// false when nothing is left to do: End then reports the status. The options
// of spec end at the first operand when it begins with "+".
func (w *Work) Options(usage, spec string) (sets []command.Set, operands []string, ok bool) {
	inOrder := strings.HasPrefix(spec, "+")
	var known []command.Option
	for _, f := range strings.Fields(strings.TrimPrefix(spec, "+")) {
		known = append(known, option(f))
	}
	known = append(known, command.Option{Long: "help"}, command.Option{Long: "version"})
	sets, operands, err := w.Call.Options(known, inOrder)
	if err != nil {
		w.Status = w.BadUsage(w.Usage, err)
		return nil, nil, false
	}
	for _, s := range sets {
		switch s.Name {
		case "help":
			fmt.Fprintf(w.Out, "Usage: %s %s\n", w.Args[0], usage)
			return nil, nil, false
		case "version":
			fmt.Fprintf(w.Out, "%s (egressd hermetic)\n", w.Args[0])
			return nil, nil, false
		}
	}
	return sets, operands, true
}

func option(field string) command.Option {
	name := strings.TrimRight(field, ":")
	o := command.Option{Takes: command.Takes(len(field) - len(name))}
	short, long, _ := strings.Cut(name, ",")
	if short != "" {
		o.Short = short[0]
	}
	o.Long = long
	return o
}

// Refuse says that an option exists elsewhere and not here, and reports Usage.
func (w *Work) Refuse(option string) int {
	w.Complain("option '%s' is not supported here", option)
	w.Status = w.Usage
	return w.Usage
}

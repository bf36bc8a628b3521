// Package awk is awk as GNU awk has it: files, pipes and commands are those of
// the session.
//
// It is not goawk, whose newest version that the module proxy hands out (v1.31.0)
// opens files with os.OpenFile: it has no Config.OpenFile yet.
package awk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/awk/syntax"
)

// Commands are the commands of this package.
func Commands() command.Table {
	return command.Table{"awk": run, "gawk": run}
}

// The statuses of awk when it fails: in the script, and while it runs.
const (
	statusSyntax = 1
	statusFatal  = 2
)

// options are the command line.
type options struct {
	program  strings.Builder
	sources  int
	label    string // "cmd. line" or a file
	assigns  []string
	fs       *string
	operands []string
}

func known() []command.Option {
	return []command.Option{
		{Short: 'F', Long: "field-separator", Takes: command.Value},
		{Short: 'v', Long: "assign", Takes: command.Value},
		{Short: 'f', Long: "file", Takes: command.Value},
		{Short: 'e', Long: "source", Takes: command.Value},
		{Short: 'E', Long: "exec", Takes: command.Value},
		{Short: 'W', Takes: command.Value},
		{Short: 'b', Long: "characters-as-bytes"},
		{Short: 'c', Long: "traditional"},
		{Short: 'P', Long: "posix"},
		{Short: 'r', Long: "re-interval"},
		{Short: 's', Long: "no-optimize"},
		{Short: 'O', Long: "optimize"},
		{Short: 'S', Long: "sandbox"},
		{Short: 't', Long: "lint-old"},
		{Short: 'n', Long: "non-decimal-data"},
		{Short: 'M', Long: "bignum"},
		{Short: 'h', Long: "help"},
		{Short: 'V', Long: "version"},
	}
}

const usage = "Usage: awk [POSIX or GNU style options] -f progfile [--] file ...\nUsage: awk [POSIX or GNU style options] [--] 'program' file ...\n"

var errDone = errors.New("done")

func run(ctx context.Context, c *command.Call) int {
	given, operands, err := c.Options(known(), true)
	if err != nil {
		c.Errorf("%v", err)
		fmt.Fprint(c.Stderr, usage)
		return statusFatal
	}
	o := options{operands: operands, label: "cmd. line"}
	for _, s := range given {
		if err := o.Set(c, s); errors.Is(err, errDone) {
			return 0
		} else if err != nil {
			return c.Fail(statusFatal, "fatal: %v", err)
		}
	}
	if o.sources == 0 {
		if len(o.operands) == 0 {
			fmt.Fprint(c.Stderr, usage)
			return statusFatal
		}
		o.program.WriteString(o.operands[0])
		o.operands = o.operands[1:]
	}
	prog, err := syntax.Parse(o.program.String())
	var undefined *syntax.UndefinedError
	switch {
	case errors.As(err, &undefined):
		return c.Fail(statusFatal, "%s:1: %v", o.label, err)
	case err != nil:
		return c.Fail(statusSyntax, "%s:%v", o.label, err)
	}
	return execute(ctx, c, &o, prog)
}

// Set takes one option.
func (o *options) Set(c *command.Call, s command.Set) error {
	switch s.Name {
	case "field-separator":
		fs := s.Value
		if fs == "t" {
			fs = "\t"
		}
		fs = syntax.Unescape(fs)
		o.fs = &fs
	case "assign":
		if name, _, ok := strings.Cut(s.Value, "="); !ok || !syntax.IsName(name) {
			return fmt.Errorf("`%s' argument to `-v' not in `var=value' form", s.Value)
		}
		o.assigns = append(o.assigns, s.Value)
	case "file", "exec":
		text, err := readProgram(c, s.Value)
		if err != nil {
			return err
		}
		o.add(text)
		o.label = s.Value
	case "source":
		o.add(s.Value)
	case "help":
		fmt.Fprint(c.Stdout, usage)
		return errDone
	case "version":
		fmt.Fprintf(c.Stdout, "%s (egressd hermetic)\n", c.Args[0])
		return errDone
	case "re-interval", "no-optimize", "optimize", "lint-old", "W":
		return nil // they change nothing here
	default:
		return fmt.Errorf("option '--%s' is not supported here", s.Name)
	}
	return nil
}

func (o *options) add(text string) {
	o.sources++
	o.program.WriteString(text)
	o.program.WriteByte('\n')
}

func readProgram(c *command.Call, name string) (string, error) {
	r := c.Stdin
	if name != "-" && name != "/dev/stdin" {
		f, err := c.FS.Open(c.Path(name))
		if err != nil {
			return "", fmt.Errorf("cannot open source file `%s' for reading: %s", name, command.Reason(err))
		}
		defer f.Close()
		r = f
	}
	most := c.Budget.Limits.Source
	b, err := io.ReadAll(io.LimitReader(r, most+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("cannot read source file `%s': %s", name, command.Reason(err))
	case int64(len(b)) > most:
		return "", fmt.Errorf("source file `%s' is larger than %d bytes", name, most)
	}
	return string(b), nil
}

// execute runs a program.
func execute(ctx context.Context, c *command.Call, o *options, prog *syntax.Program) int {
	in := newInterp(ctx, c, prog)
	err := in.setup(o)
	if err == nil {
		err = in.main()
	}
	if end := in.io.closeAll(); err == nil {
		err = end
	}
	switch {
	case err == nil:
		return in.status
	case errors.Is(err, syscall.EPIPE), errors.Is(err, io.ErrClosedPipe):
		return 141
	case ctx.Err() != nil:
		return statusFatal
	}
	return c.Fail(statusFatal, "%s", in.fatal(err))
}

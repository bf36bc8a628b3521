// Package sed is GNU sed 4.9, in process.
package sed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"
	"syscall"

	"egressd/hermetic/command"
)

// Commands are the commands of this package.
func Commands() command.Table { return command.Table{"sed": run} }

// The statuses of sed.
const (
	statusUsage = 1 // of the script, too
	statusInput = 2 // a file could not be read
	statusPanic = 4
)

// options are what one run was asked for.
type options struct {
	quiet, extended, separate, unbuffered, zero bool
	posix, sandbox, inPlace                     bool
	suffix                                      string
	lineLength                                  int
	chunks                                      []chunk
	files                                       []string
	byteLocale                                  bool
}

func known() []command.Option {
	return []command.Option{
		{Short: 'n', Long: "quiet"},
		{Long: "silent"},
		{Short: 'e', Long: "expression", Takes: command.Value},
		{Short: 'f', Long: "file", Takes: command.Value},
		{Short: 'E', Long: "regexp-extended"},
		{Short: 'r', Long: "regexp-extended"},
		{Short: 'i', Long: "in-place", Takes: command.Glued},
		{Short: 'l', Long: "line-length", Takes: command.Value},
		{Short: 's', Long: "separate"},
		{Short: 'u', Long: "unbuffered"},
		{Short: 'z', Long: "null-data"},
		{Long: "zero-terminated"},
		{Long: "posix"},
		{Long: "sandbox"},
		{Long: "debug"},
		{Long: "follow-symlinks"},
		{Short: 'b', Long: "binary"},
		{Long: "help"},
		{Long: "version"},
	}
}

const usage = "Usage: sed [OPTION]... {script-only-if-no-other-script} [input-file]...\n"

// failure is an error with the status that sed ends with.
type failure struct {
	status int
	text   string
}

func (f *failure) Error() string { return f.text }

func fail(status int, format string, args ...any) error {
	return &failure{status, fmt.Sprintf(format, args...)}
}

func run(ctx context.Context, c *command.Call) int {
	given, operands, err := c.Options(known(), false)
	if err != nil {
		c.Errorf("%v", err)
		fmt.Fprint(c.Stderr, usage)
		return statusUsage
	}
	o := options{lineLength: 70, files: operands, byteLocale: byteLocale(c)}
	for _, s := range given {
		switch s.Name {
		case "help":
			fmt.Fprint(c.Stdout, usage+"Options are those of GNU sed 4.9.\n")
			return 0
		case "version":
			fmt.Fprintln(c.Stdout, "sed (egressd hermetic)")
			return 0
		}
		if err := o.set(c, s); err != nil {
			return report(c, err)
		}
	}
	if len(o.chunks) == 0 {
		if len(o.files) == 0 {
			fmt.Fprint(c.Stderr, usage)
			return statusUsage
		}
		o.chunks = append(o.chunks, chunk{number: 1, text: o.files[0]})
		o.files = o.files[1:]
	}
	return start(ctx, c, &o)
}

// start compiles the script and runs it.
func start(ctx context.Context, c *command.Call, o *options) int {
	p := newParser(c, o)
	script, err := p.parse()
	if err != nil {
		return report(c, err)
	}
	m := newMachine(ctx, c, o, script)
	status, err := m.run()
	if err != nil {
		m.in.abandon()
	}
	if end := m.close(); err == nil {
		err = end
	}
	if err != nil {
		return report(c, err)
	}
	return status
}

func report(c *command.Call, err error) int {
	var f *failure
	var at *fs.PathError
	switch {
	case errors.Is(err, syscall.EPIPE), errors.Is(err, io.ErrClosedPipe):
		return 141
	case errors.As(err, &f):
		c.Errorf("%s", f.text)
		return f.status
	case errors.As(err, &at):
		c.Errorf("couldn't flush %s: %s", at.Path, command.Reason(err))
		return statusPanic
	}
	c.Errorf("%s", command.Reason(err))
	return statusPanic
}

func byteLocale(c *command.Call) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := c.Getenv(name); v != "" {
			return v == "C" || v == "POSIX"
		}
	}
	return false
}

// set takes one option.
func (o *options) set(c *command.Call, s command.Set) error {
	switch s.Name {
	case "quiet", "silent":
		o.quiet = true
	case "expression":
		n := 1
		for _, ch := range o.chunks {
			if ch.file == "" {
				n++
			}
		}
		o.chunks = append(o.chunks, chunk{number: n, text: s.Value})
	case "file":
		text, err := readScript(c, s.Value)
		if err != nil {
			return err
		}
		o.chunks = append(o.chunks, chunk{file: s.Value, text: text})
	case "regexp-extended":
		o.extended = true
	case "in-place":
		o.inPlace, o.separate, o.suffix = true, true, s.Value
	case "line-length":
		n, err := strconv.ParseUint(s.Value, 10, 31)
		if err != nil {
			return fail(statusUsage, "invalid line length: %s", s.Value)
		}
		o.lineLength = int(n)
	case "separate":
		o.separate = true
	case "unbuffered":
		o.unbuffered = true
	case "null-data", "zero-terminated":
		o.zero = true
	case "posix":
		o.posix = true
	case "sandbox":
		o.sandbox = true
	case "debug":
		return fail(statusUsage, "option '--debug' is not supported here")
	}
	return nil // -b and --follow-symlinks: there are no text files, and -i follows them or not below
}

// readScript reads a file of -f, without the newline at its end.
func readScript(c *command.Call, name string) (string, error) {
	r := c.Stdin
	if name != "-" && name != "/dev/stdin" {
		f, err := c.FS.Open(c.Path(name))
		if err != nil {
			return "", fail(statusUsage, "couldn't open file %s: %s", name, command.Reason(err))
		}
		defer f.Close()
		r = f
	}
	most := c.Budget.Limits.Source
	b, err := io.ReadAll(io.LimitReader(r, most+1))
	switch {
	case err != nil:
		return "", fail(statusPanic, "read error on %s: %s", name, command.Reason(err))
	case int64(len(b)) > most:
		return "", fail(statusPanic, "%s: the script is larger than %d bytes", name, most)
	}
	return strings.TrimSuffix(string(b), "\n"), nil
}

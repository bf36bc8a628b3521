package xargs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu"
)

const xargsSpec = "+0,null a,arg-file: d,delimiter: E: e,eof:: I: i,replace:: L: l,max-lines:: n,max-args: o,open-tty " +
	"p,interactive P,max-procs: ,process-slot-var: r,no-run-if-empty s,max-chars: ,show-limits t,verbose x,exit"

// The bytes of one command line: what xargs uses unless told, and the most.
const (
	xargsChars    = 128 << 10
	xargsMaxChars = 2 << 20
	xargsMaxJobs  = 32
)

// xargsCall is what xargs was asked, and how far it is.
type xargsCall struct {
	*gnu.Work
	initial []string
	file    string
	delim   int // -1: blanks and quotes
	eof     string
	replace string
	lines   int
	args    int
	jobs    int
	slot    string
	chars   int
	noRun   bool
	verbose bool
	ask     bool
	exit    bool

	batch  []string
	size   int
	nLines int
	ran    bool
	crew   *crew
}

// xargs builds command lines of its input and runs them.
func xargs(ctx context.Context, c *command.Call) int {
	x := &xargsCall{Work: gnu.Begin(ctx, c), delim: -1, jobs: 1, chars: xargsChars, file: "-"}
	sets, operands, ok := x.Options("[OPTION]... COMMAND [INITIAL-ARGS]...", xargsSpec)
	if !ok {
		return x.End()
	}
	for _, s := range sets {
		if !x.option(s) {
			return x.End()
		}
	}
	if x.initial = operands; len(operands) == 0 {
		x.initial = []string{"echo"}
	}
	if x.replace != "" {
		x.exit = true
	}
	for _, a := range x.initial {
		x.size += len(a) + 1
	}
	if x.size > x.chars {
		return x.Die(1, "cannot fit single argument within argument list size limit")
	}
	r, err := x.Open(x.file)
	if err != nil {
		return x.Die(1, "Cannot open input file %s: %s", gnu.Quote(x.file), command.Reason(err))
	}
	defer r.Close()
	x.crew = newCrew(x)
	x.run(r)
	return max(x.crew.wait(), x.Status)
}

func (x *xargsCall) option(s command.Set) bool {
	switch s.Name {
	case "null":
		x.delim = 0
	case "arg-file":
		x.file = s.Value
	case "delimiter":
		return x.delimiter(s.Value)
	case "E", "eof":
		x.eof = s.Value
	case "I", "replace":
		if x.replace = s.Value; s.Value == "" {
			x.replace = "{}"
		}
		x.exclusive("--replace/-I/-i", &x.args, "--max-args")
		x.exclusive("--replace/-I/-i", &x.lines, "--max-lines")
	case "L", "max-lines":
		if x.lines = 1; s.Given {
			if !x.count("L", s.Value, 1, &x.lines) {
				return false
			}
		}
		x.exclusive("--max-lines", &x.args, "--max-args")
		x.unreplace("--max-lines")
	case "max-args":
		if !x.count("n", s.Value, 1, &x.args) {
			return false
		}
		x.exclusive("--max-args/-n", &x.lines, "--max-lines")
		if x.args == 1 && x.replace != "" {
			x.args = 0
			return true
		}
		x.unreplace("--max-args")
	case "max-procs":
		return x.count("P", s.Value, 0, &x.jobs)
	case "max-chars":
		if !x.count("s", s.Value, 1, &x.chars) {
			return false
		}
		x.chars = min(x.chars, xargsMaxChars)
	case "process-slot-var":
		x.slot = s.Value
	case "no-run-if-empty":
		x.noRun = true
	case "verbose":
		x.verbose = true
	case "interactive":
		x.ask, x.verbose = true, true
	case "exit":
		x.exit = true
	default:
		x.Refuse("--" + s.Name)
		return false
	}
	return true
}

// exclusive puts a bound that contradicts option out of force.
func (x *xargsCall) exclusive(option string, bound *int, other string) {
	if *bound > 0 {
		x.Complain("warning: options %s and %s are mutually exclusive, ignoring previous %s value", other, option, other)
		*bound = 0
	}
}

func (x *xargsCall) unreplace(option string) {
	if x.replace != "" {
		x.Complain("warning: options --replace and %s/-%c are mutually exclusive, ignoring previous --replace value", option,
			map[string]byte{"--max-args": 'n', "--max-lines": 'L'}[option])
		x.replace = ""
	}
}

func (x *xargsCall) count(letter, value string, least int, to *int) bool {
	n, err := strconv.ParseInt(value, 10, 32)
	switch {
	case errors.Is(err, strconv.ErrSyntax):
		x.TryHelp("invalid number %s for -%s option", strconv.Quote(value), letter)
	case int(n) < least && err == nil:
		x.TryHelp("value %s for -%s option should be >= %d", value, letter, least)
	default:
		*to = int(n)
		return true
	}
	return false
}

func (x *xargsCall) delimiter(s string) bool {
	if len(s) == 1 {
		x.delim = int(s[0])
		return true
	}
	if len(s) > 1 && s[0] == '\\' {
		if at := strings.IndexByte("abfnrtv\\", s[1]); at >= 0 && len(s) == 2 {
			x.delim = int("\a\b\f\n\r\t\v\\"[at])
			return true
		}
		digits, base := s[1:], 8
		if s[1] == 'x' {
			digits, base = s[2:], 16
		}
		n, err := strconv.ParseUint(digits, base, 8)
		if err == nil {
			x.delim = int(n)
			return true
		}
		x.Die(1, "Invalid escape sequence %s in input delimiter specification.", s)
		return false
	}
	x.Die(1, "Invalid input delimiter specification %s: the delimiter must be either a single character or an escape sequence starting with \\.", s)
	return false
}

// run reads all items and starts the commands.
func (x *xargsCall) run(r io.Reader) {
	base := x.size
	in := &items{x: x, lines: x.Lines(r, byte(max(x.delim, '\n')*gnu.One(x.delim != 0)))}
	for x.Ctx.Err() == nil && !x.crew.stopped() {
		item, endOfLine, err := in.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			if len(x.batch) > 0 && !x.exit && x.lines == 0 {
				x.start(nil)
			}
			if !x.crew.stopped() {
				x.Fault("%s", err)
			}
			return
		}
		if !x.add(item, endOfLine, base) {
			return
		}
	}
	if len(x.batch) > 0 || !x.ran && !x.noRun && x.replace == "" {
		if !x.crew.stopped() {
			x.start(nil)
		}
	}
}

// add puts one item on the command line; false: give up.
func (x *xargsCall) add(item string, endOfLine bool, base int) bool {
	if x.replace != "" {
		return x.startReplaced(item)
	}
	if x.size+len(item)+1 > x.chars {
		if x.exit && (x.args > 0 || x.lines > 0) && len(x.batch) > 0 {
			x.Fault("argument list too long")
			return false
		}
		if len(x.batch) == 0 {
			x.Fault("argument line too long")
			return false
		}
		x.start(nil)
		x.size = base
		if x.size+len(item)+1 > x.chars {
			x.Fault("argument line too long")
			return false
		}
	}
	x.batch = append(x.batch, item)
	x.size += len(item) + 1
	if endOfLine {
		x.nLines++
	}
	if x.args > 0 && len(x.batch) == x.args || x.lines > 0 && x.nLines >= x.lines {
		x.start(nil)
		x.size = base
	}
	return true
}

func (x *xargsCall) startReplaced(item string) bool {
	args, size := []string{x.initial[0]}, len(x.initial[0])+1
	for _, a := range x.initial[1:] {
		n := strings.Count(a, x.replace)
		if size += len(a) + n*(len(item)-len(x.replace)) + 1; size > x.chars {
			x.Fault("command too long")
			return false
		}
		args = append(args, strings.ReplaceAll(a, x.replace, item))
	}
	x.start(args)
	return true
}

// start runs one command line; nil: the initial arguments and the batch.
func (x *xargsCall) start(args []string) {
	if args == nil {
		args = append(append(make([]string, 0, len(x.initial)+len(x.batch)), x.initial...), x.batch...)
	}
	x.batch, x.nLines, x.ran = nil, 0, true
	if x.verbose {
		var b strings.Builder
		for i, a := range args {
			if i > 0 {
				b.WriteByte(' ')
			}
			b.WriteString(gnu.QuoteName(a))
		}
		if x.ask {
			fmt.Fprint(x.Stderr, b.String())
			x.Fault("failed to open /dev/tty for reading: No such device or address")
			x.crew.stop()
			return
		}
		fmt.Fprintln(x.Stderr, b.String())
	}
	x.crew.start(args)
}

package builtin

import (
	"context"
	"errors"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/shell/expand"
	"egressd/hermetic/internal/shell/state"
	"egressd/hermetic/internal/shell/vars"
	"egressd/hermetic/limits"
)

// readOptions is the arguments of read.
type readOptions struct {
	raw, exact bool
	array      string
	delim      byte
	fd, count  int
	timeout    time.Duration
	hasTimeout bool
	prompt     string
	names      []string
}

// runRead is the builtin read.
func runRead(sh *state.Shell, args []string) int {
	o, status := readArgs(sh, args)
	if status != 0 {
		return status
	}
	if f := sh.FDs.Open[o.fd]; f == nil || !f.CanRead() {
		sh.Errorf("read: %d: invalid file descriptor: Bad file descriptor", o.fd)
		return 1
	}
	if o.hasTimeout && o.timeout == 0 {
		return 0
	}
	line, quoted, status := readLine(sh, o)
	if status > 1 && status != 142 {
		return status
	}
	if !assignRead(sh, o, line, quoted) {
		return 2
	}
	return status
}

// readArgs reads the options and names.
func readArgs(sh *state.Shell, args []string) (o readOptions, status int) {
	o = readOptions{delim: '\n', count: -1}
	args = args[1:]
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		a := args[0]
		args = args[1:]
		if a == "--" {
			break
		}
		for i := 1; i < len(a); i++ {
			switch a[i] {
			case 'r':
				o.raw = true
				continue
			case 's', 'e':
				continue
			case 'a', 'd', 'n', 'N', 'p', 't', 'u', 'i':
			default:
				sh.Errorf("read: -%c: invalid option", a[i])
				sh.ErrText("read: usage: read [-ers] [-a array] [-d delim] [-i text] [-n nchars] [-N nchars] [-p prompt] [-t timeout] [-u fd] [name ...]\n")
				return o, 2
			}
			val := a[i+1:]
			if val == "" {
				if len(args) == 0 {
					sh.Errorf("read: -%c: option requires an argument", a[i])
					return o, 2
				}
				val, args = args[0], args[1:]
			}
			if status := readOption(sh, &o, a[i], val); status != 0 {
				return o, status
			}
			break
		}
	}
	o.names = args
	for _, n := range args {
		if _, _, ok := vars.SplitSubscript(n); !ok && !vars.ValidName(n) {
			sh.Errorf("read: `%s': not a valid identifier", n)
			return o, 1
		}
	}
	return o, 0
}

// readOption sets one option that has a value, and returns the exit status of a
// mistake.
func readOption(sh *state.Shell, o *readOptions, c byte, val string) int {
	switch c {
	case 'a':
		o.array = val
		if !vars.ValidName(val) {
			sh.Errorf("read: `%s': not a valid identifier", val)
			return 1
		}
	case 'd':
		o.delim = 0
		if val != "" {
			o.delim = val[0]
		}
	case 'n', 'N':
		n, err := strconv.Atoi(val)
		if err != nil || n < 0 {
			sh.Errorf("read: %s: invalid number", val)
			return 1
		}
		o.count, o.exact = n, c == 'N'
	case 'p':
		o.prompt = val
	case 't':
		f, err := strconv.ParseFloat(val, 64)
		if err != nil || f < 0 {
			sh.Errorf("read: %s: invalid timeout specification", val)
			return 1
		}
		o.timeout, o.hasTimeout = time.Duration(min(f, 1e9)*float64(time.Second)), true
	case 'u':
		n, err := strconv.Atoi(val)
		if err != nil || n < 0 {
			sh.Errorf("read: %s: invalid file descriptor specification", val)
			return 1
		}
		o.fd = n
	}
	return 0
}

// ReadReply reads a line for select; false at the end of the input.
func ReadReply(sh *state.Shell) (string, bool) {
	line, _, status := readLine(sh, readOptions{delim: '\n', count: -1})
	return string(line), status == 0
}

// readLine reads up to the delimiter or the count. quoted marks the bytes that
// had a backslash before them.
func readLine(sh *state.Shell, o readOptions) (line []byte, quoted []bool, status int) {
	in := newInput(sh, o.fd)
	defer in.done()
	if o.hasTimeout {
		ctx, cancel := context.WithTimeout(sh.Ctx, o.timeout)
		defer cancel()
		in.in.Ctx = ctx
	}
	chars := 0
	escaped := false
	for o.count < 0 || chars < o.count {
		c, err := in.next()
		if err != nil {
			sh.Check()
			sh.CheckLimit()
			switch {
			case errors.Is(err, io.EOF):
				return line, quoted, 1
			case o.hasTimeout && errors.Is(err, context.DeadlineExceeded):
				return line, quoted, 142
			}
			sh.Errorf("read: read error: %d: %s", o.fd, command.Reason(err))
			return line, quoted, 1
		}
		switch {
		case escaped:
			escaped = false
			if c == '\n' {
				continue
			}
			line, quoted = append(line, c), append(quoted, true)
			chars++
			continue
		case c == '\\' && !o.raw:
			escaped = true
			continue
		case c == o.delim && !o.exact:
			return line, quoted, 0
		case c == 0:
			continue
		}
		line, quoted = append(line, c), append(quoted, false)
		if most := sh.Session.Budget.Limits.String; int64(len(line)) > most {
			sh.Exceed(&limits.Exceeded{Name: "string", Limit: most, What: "bytes are in one string"})
		}
		if o.count < 0 || utf8.RuneStart(c) && c < utf8.RuneSelf || utf8.Valid(line[lastStart(line):]) {
			chars++
		}
	}
	return line, quoted, 0
}

// lastStart is the index of the last character of b.
func lastStart(b []byte) int {
	for i := len(b) - 1; i >= 0 && i > len(b)-4; i-- {
		if utf8.RuneStart(b[i]) {
			return i
		}
	}
	return len(b) - 1
}

// assignRead assigns the fields of a line.
func assignRead(sh *state.Shell, o readOptions, line []byte, quoted []bool) bool {
	if o.array != "" {
		v := sh.Vars.Target(sh.Vars.Resolve(o.array))
		if v.Readonly {
			sh.Errorf("%s: readonly variable", o.array)
			return false
		}
		if v.Kind == vars.Assoc {
			sh.Errorf("read: %s: cannot convert associative to indexed array", o.array)
			return false
		}
		return sh.Vars.SetList(o.array, splitRead(line, quoted, expand.IFS(sh), -1))
	}
	if len(o.names) == 0 {
		return sh.Vars.Set("REPLY", string(line))
	}
	if o.exact {
		ok := setPlace(sh, o.names[0], string(line))
		for _, n := range o.names[1:] {
			ok = setPlace(sh, n, "") && ok
		}
		return ok
	}
	vals := splitRead(line, quoted, expand.IFS(sh), len(o.names))
	ok := true
	for i, n := range o.names {
		val := ""
		if i < len(vals) {
			val = vals[i]
		}
		ok = setPlace(sh, n, val) && ok
	}
	return ok
}

// setPlace assigns to a name or to an element.
func setPlace(sh *state.Shell, place, val string) bool {
	if base, index, ok := vars.SplitSubscript(place); ok {
		return sh.Vars.SetElement(base, expand.Text(sh, index), val, false)
	}
	return sh.Vars.Set(place, val)
}

// splitRead splits a line at IFS into at most n fields (-1: any number). The
// last field is the rest.
func splitRead(line []byte, quoted []bool, ifs string, n int) []string {
	sep := func(i int) bool { return !quoted[i] && strings.IndexByte(ifs, line[i]) >= 0 }
	white := func(i int) bool { return sep(i) && strings.IndexByte(" \t\n", line[i]) >= 0 }
	i, end := 0, len(line)
	for i < end && white(i) {
		i++
	}
	var out []string
	for i < end {
		if n > 0 && len(out) == n-1 {
			return append(out, lastField(line, i, end, sep, white))
		}
		start := i
		for i < end && !sep(i) {
			i++
		}
		out = append(out, string(line[start:i]))
		for i < end && white(i) {
			i++
		}
		if i < end && sep(i) && !white(i) {
			i++
			for i < end && white(i) {
				i++
			}
		}
	}
	return out
}

// lastField is the rest of a line, without blanks at its end, and without a
// separator that only ends it.
func lastField(line []byte, i, end int, sep, white func(int) bool) string {
	for end > i && white(end-1) {
		end--
	}
	j := i
	for j < end && !sep(j) {
		j++
	}
	if j < end {
		k := j
		for k < end && white(k) {
			k++
		}
		if k < end && sep(k) && !white(k) {
			k++
		}
		if k >= end {
			end = j
		}
	}
	return string(line[i:end])
}

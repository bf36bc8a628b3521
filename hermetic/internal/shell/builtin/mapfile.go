package builtin

import (
	"errors"
	"io"
	"strconv"
	"strings"

	"egressd/hermetic/internal/shell/quote"
	"egressd/hermetic/internal/shell/state"
	"egressd/hermetic/internal/shell/vars"
)

// mapPlan is the arguments of mapfile.
type mapPlan struct {
	who      string // mapfile or readarray
	name     string // the array
	trim     bool   // -t: without the delimiters
	delim    byte
	count    int // -1: all lines
	origin   int // the first subscript; -1: 0, in an emptied array
	skip     int
	fd       int
	callback string
	every    int // lines between two calls of callback
}

// runMapfile is the builtins mapfile and readarray.
func runMapfile(sh *state.Shell, args []string) int {
	m := mapPlan{who: args[0], name: "MAPFILE", delim: '\n', count: -1, origin: -1, every: 5000}
	rest, status := m.options(sh, args[1:])
	if status != 0 {
		return status
	}
	if len(rest) > 0 {
		m.name = rest[0]
	}
	if !vars.ValidName(m.name) {
		sh.Errorf("%s: `%s': not a valid identifier", m.who, m.name)
		return 1
	}
	if sh.FDs.Open[m.fd] == nil || !sh.FDs.Open[m.fd].CanRead() {
		sh.Errorf("%s: %d: invalid file descriptor: Bad file descriptor", m.who, m.fd)
		return 1
	}
	v := sh.Vars.Target(sh.Vars.Resolve(m.name))
	switch {
	case v.Readonly:
		sh.Errorf("%s: readonly variable", m.name)
		return 1
	case v.Kind == vars.Assoc:
		sh.Errorf("%s: %s: not an indexed array", m.who, m.name)
		return 1
	}
	if m.origin < 0 {
		sh.Vars.SetList(m.name, nil)
		v = sh.Vars.Target(sh.Vars.Resolve(m.name))
		m.origin = 0
	}
	v.IsSet = true
	v.ToIndexed()
	return m.fill(sh, v)
}

// options reads the options and returns the operands.
func (m *mapPlan) options(sh *state.Shell, args []string) (rest []string, status int) {
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		a := args[0]
		args = args[1:]
		if a == "--" {
			break
		}
		for i := 1; i < len(a); i++ {
			if a[i] == 't' {
				m.trim = true
				continue
			}
			if strings.IndexByte("dnOsuCc", a[i]) < 0 {
				sh.Errorf("%s: -%c: invalid option", m.who, a[i])
				sh.ErrText(m.who + ": usage: " + m.who + " [-d delim] [-n count] [-O origin] [-s count] [-t] [-u fd] [-C callback] [-c quantum] [array]\n")
				return nil, 2
			}
			val := a[i+1:]
			if val == "" {
				if len(args) == 0 {
					sh.Errorf("%s: -%c: option requires an argument", m.who, a[i])
					return nil, 2
				}
				val, args = args[0], args[1:]
			}
			if !m.option(a[i], val) {
				sh.Errorf("%s: %s: invalid line count", m.who, val)
				return nil, 1
			}
			break
		}
	}
	return args, 0
}

// option sets one option; false if its value is not a number.
func (m *mapPlan) option(c byte, val string) bool {
	switch c {
	case 'd':
		m.delim = 0
		if val != "" {
			m.delim = val[0]
		}
		return true
	case 'C':
		m.callback = val
		return true
	}
	n, err := strconv.Atoi(val)
	switch c {
	case 'n':
		if m.count = n; n == 0 {
			m.count = -1
		}
	case 'O':
		m.origin = n
	case 's':
		m.skip = n
	case 'u':
		m.fd = n
	case 'c':
		m.every = max(n, 1)
	}
	return err == nil
}

// fill reads lines into v.
func (m *mapPlan) fill(sh *state.Shell, v *vars.Variable) int {
	in := newInput(sh, m.fd)
	defer in.done()
	var line []byte
	got := 0
	for m.count < 0 || got < m.count {
		c, err := in.next()
		if err != nil && !errors.Is(err, io.EOF) {
			sh.Check()
			sh.CheckLimit()
		}
		if err != nil && len(line) == 0 {
			break
		}
		if err == nil {
			line = append(line, c)
			if c != m.delim {
				sh.CheckLen(len(line))
				continue
			}
		}
		text := string(line)
		if err == nil && (m.trim || m.delim == 0) {
			text = text[:len(text)-1]
		}
		line = line[:0]
		if m.skip > 0 {
			m.skip--
			continue
		}
		text = strings.ReplaceAll(text, "\x00", "")
		at := strconv.Itoa(m.origin + got)
		got++
		if m.callback != "" && got%m.every == 0 {
			sh.EvalText(m.callback + " " + at + " " + quote.Single(text))
		}
		if !sh.Vars.SetElementOf(v, m.name, at, text, false) {
			return 1
		}
		if err != nil {
			break
		}
	}
	return 0
}

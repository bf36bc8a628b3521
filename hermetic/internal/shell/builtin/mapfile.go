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

func runMapfile(sh *state.Shell, args []string) int {
	who := args[0]
	args = args[1:]
	trim, delim, count, origin, skip, fd, every := false, byte('\n'), -1, -1, 0, 0, 5000
	callback := ""
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		a := args[0]
		args = args[1:]
		if a == "--" {
			break
		}
		for i := 1; i < len(a); i++ {
			if a[i] == 't' {
				trim = true
				continue
			}
			if strings.IndexByte("dnOsuCc", a[i]) < 0 {
				sh.Errorf("%s: -%c: invalid option", who, a[i])
				sh.ErrText(who + ": usage: " + who + " [-d delim] [-n count] [-O origin] [-s count] [-t] [-u fd] [-C callback] [-c quantum] [array]\n")
				return 2
			}
			val := a[i+1:]
			if val == "" {
				if len(args) == 0 {
					sh.Errorf("%s: -%c: option requires an argument", who, a[i])
					return 2
				}
				val, args = args[0], args[1:]
			}
			n, err := strconv.Atoi(val)
			if err != nil && a[i] != 'd' && a[i] != 'C' {
				sh.Errorf("%s: %s: invalid line count", who, val)
				return 1
			}
			switch a[i] {
			case 'd':
				delim = 0
				if val != "" {
					delim = val[0]
				}
			case 'n':
				if count = n; n == 0 {
					count = -1
				}
			case 'O':
				origin = n
			case 's':
				skip = n
			case 'u':
				fd = n
			case 'C':
				callback = val
			case 'c':
				every = max(n, 1)
			}
			break
		}
	}
	name := "MAPFILE"
	if len(args) > 0 {
		name = args[0]
	}
	if !vars.ValidName(name) {
		sh.Errorf("%s: `%s': not a valid identifier", who, name)
		return 1
	}
	if sh.FDs.Open[fd] == nil || !sh.FDs.Open[fd].CanRead() {
		sh.Errorf("%s: %d: invalid file descriptor: Bad file descriptor", who, fd)
		return 1
	}
	v := sh.Vars.Target(sh.Vars.Resolve(name))
	switch {
	case v.Readonly:
		sh.Errorf("%s: readonly variable", name)
		return 1
	case v.Kind == vars.Assoc:
		sh.Errorf("%s: %s: not an indexed array", who, name)
		return 1
	}
	if origin < 0 {
		sh.Vars.SetList(name, nil)
		v = sh.Vars.Target(sh.Vars.Resolve(name))
		origin = 0
	}
	v.IsSet = true
	v.ToIndexed()
	return fillMap(sh, v, name, mapPlan{trim, delim, count, origin, skip, fd, every, callback})
}

type mapPlan struct {
	trim                           bool
	delim                          byte
	count, origin, skip, fd, every int
	callback                       string
}

func fillMap(sh *state.Shell, v *vars.Variable, name string, m mapPlan) int {
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
		at := m.origin + got
		got++
		if m.callback != "" && got%m.every == 0 {
			sh.EvalText(m.callback + " " + strconv.Itoa(at) + " " + quote.Single(text))
		}
		if !sh.Vars.SetElementOf(v, name, strconv.Itoa(at), text, false) {
			return 1
		}
		if err != nil {
			break
		}
	}
	return 0
}

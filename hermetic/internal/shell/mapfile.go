package shell

import (
	"errors"
	"io"
	"strconv"
	"strings"
)

func builtinMapfile(sh *shell, args []string) int {
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
				sh.errorf("%s: -%c: invalid option", who, a[i])
				sh.errText(who + ": usage: " + who + " [-d delim] [-n count] [-O origin] [-s count] [-t] [-u fd] [-C callback] [-c quantum] [array]\n")
				return 2
			}
			val := a[i+1:]
			if val == "" {
				if len(args) == 0 {
					sh.errorf("%s: -%c: option requires an argument", who, a[i])
					return 2
				}
				val, args = args[0], args[1:]
			}
			n, err := strconv.Atoi(val)
			if err != nil && a[i] != 'd' && a[i] != 'C' {
				sh.errorf("%s: %s: invalid line count", who, val)
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
	if !validName(name) {
		sh.errorf("%s: `%s': not a valid identifier", who, name)
		return 1
	}
	if sh.fds[fd] == nil || !sh.fds[fd].CanRead() {
		sh.errorf("%s: %d: invalid file descriptor: Bad file descriptor", who, fd)
		return 1
	}
	v := sh.target(sh.resolve(name))
	switch {
	case v.readonly:
		sh.errorf("%s: readonly variable", name)
		return 1
	case v.kind == assocVar:
		sh.errorf("%s: %s: not an indexed array", who, name)
		return 1
	}
	if origin < 0 {
		sh.setList(name, nil)
		v = sh.target(sh.resolve(name))
		origin = 0
	}
	v.isSet = true
	sh.toIndexed(v)
	return sh.fillMap(v, name, mapPlan{trim, delim, count, origin, skip, fd, every, callback})
}

type mapPlan struct {
	trim                           bool
	delim                          byte
	count, origin, skip, fd, every int
	callback                       string
}

func (sh *shell) fillMap(v *variable, name string, m mapPlan) int {
	in := sh.reader(m.fd)
	defer in.done()
	var line []byte
	got := 0
	for m.count < 0 || got < m.count {
		c, err := in.next()
		if err != nil && !errors.Is(err, io.EOF) {
			sh.check()
			sh.checkLimit()
		}
		if err != nil && len(line) == 0 {
			break
		}
		if err == nil {
			line = append(line, c)
			if c != m.delim {
				sh.checkLen(len(line))
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
			sh.evalText(m.callback + " " + strconv.Itoa(at) + " " + quoteSingle(text))
		}
		if !sh.setElementOf(v, name, strconv.Itoa(at), text, false) {
			return 1
		}
		if err != nil {
			break
		}
	}
	return 0
}

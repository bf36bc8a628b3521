package builtin

import (
	"strings"
	"time"

	"egressd/hermetic/internal/shell/chars"
	"egressd/hermetic/internal/shell/expand"
	"egressd/hermetic/internal/shell/quote"
	"egressd/hermetic/internal/shell/state"
	"egressd/hermetic/internal/shell/vars"
)

// runPrintf is the builtin printf.
func runPrintf(sh *state.Shell, args []string) int {
	target := ""
	args = args[1:]
	if len(args) > 0 && strings.HasPrefix(args[0], "-v") {
		if target = args[0][2:]; target == "" {
			if len(args) < 2 {
				sh.Errorf("printf: -v: option requires an argument")
				return 2
			}
			target, args = args[1], args[1:]
		}
		args = args[1:]
		if _, _, ok := vars.SplitSubscript(target); !ok && !vars.ValidName(target) {
			sh.Errorf("printf: `%s': not a valid identifier", target)
			return 2
		}
	}
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	} else if len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		sh.Errorf("printf: %s: invalid option", args[0][:2])
		sh.ErrText("printf: usage: printf [-v var] format [arguments]\n")
		return 2
	}
	if len(args) == 0 {
		sh.ErrText("printf: usage: printf [-v var] format [arguments]\n")
		return 2
	}
	p := &printfRun{sh: sh, args: args[1:]}
	p.run(args[0])
	sh.Commands.Running = "printf"
	if target == "" {
		if !sh.Out(p.out.String()) {
			return 1
		}
		return p.status
	}
	val := p.out.String()
	if i := strings.IndexByte(val, 0); i >= 0 {
		val = val[:i]
	}
	ok := false
	if base, index, indexed := vars.SplitSubscript(target); indexed {
		ok = sh.Vars.SetElement(base, expand.Text(sh, index), val, false)
	} else {
		ok = sh.Vars.Set(target, val)
	}
	if !ok {
		return 1
	}
	return p.status
}

type printfRun struct {
	sh     *state.Shell
	args   []string
	used   bool
	stop   bool
	out    strings.Builder
	status int
}

func (p *printfRun) run(format string) {
	for {
		p.used = false
		p.once(format)
		if p.stop || !p.used || len(p.args) == 0 {
			return
		}
		p.sh.CheckLen(p.out.Len())
		p.sh.Check()
	}
}

func (p *printfRun) next() (string, bool) {
	p.used = true
	if len(p.args) == 0 {
		return "", false
	}
	a := p.args[0]
	p.args = p.args[1:]
	return a, true
}

func (p *printfRun) once(f string) {
	for i := 0; i < len(f) && !p.stop; {
		switch f[i] {
		case '\\':
			i += p.backslash(f[i:])
		case '%':
			i += p.directive(f[i:])
		default:
			j := strings.IndexAny(f[i:], "\\%")
			if j < 0 {
				j = len(f) - i
			}
			p.out.WriteString(f[i : i+j])
			i += j
		}
	}
}

func (p *printfRun) backslash(s string) int {
	if len(s) == 1 {
		p.out.WriteByte('\\')
		return 1
	}
	switch s[1] {
	case '\\', '"', '\'', '?':
		p.out.WriteByte(s[1])
		return 2
	case 'c':
		p.out.WriteString(`\c`)
		return 2
	}
	text, used, ok := quote.Escape(s[1:], false)
	if !ok {
		if s[1] == 'x' {
			p.sh.Errorf("printf: missing hex digit for \\x")
		}
		p.out.WriteByte('\\')
		return 1
	}
	p.out.WriteString(text)
	return 1 + used
}

type spec struct {
	flags       string
	width, prec int
	hasPrec     bool
}

// directive handles what begins with % and reports its length.
func (p *printfRun) directive(s string) int {
	if strings.HasPrefix(s, "%%") {
		p.out.WriteByte('%')
		return 2
	}
	i := 1
	var sp spec
	for i < len(s) && strings.IndexByte("#0-+ '", s[i]) >= 0 {
		sp.flags += s[i : i+1]
		i++
	}
	sp.width, i = p.number(s, i)
	if sp.width < 0 {
		sp.flags += "-"
		sp.width = -sp.width
	}
	if i < len(s) && s[i] == '.' {
		sp.hasPrec = true
		sp.prec, i = p.number(s, i+1)
		if sp.prec < 0 {
			sp.hasPrec = false
		}
	}
	p.sh.CheckLen(sp.width)
	p.sh.CheckLen(sp.prec)
	timeFormat := ""
	if i < len(s) && s[i] == '(' {
		end := strings.Index(s[i:], ")T")
		if end < 0 {
			p.sh.Errorf("printf: warning: `%c': invalid time format specification", '(')
			p.out.WriteByte('%')
			return 1
		}
		timeFormat, i = s[i+1:i+end], i+end+1
	}
	for i < len(s) && strings.IndexByte("hlLjzt", s[i]) >= 0 {
		i++
	}
	if i >= len(s) {
		p.sh.Errorf("printf: `%s': missing format character", s)
		p.status, p.stop = 1, true
		return len(s)
	}
	if !p.convert(s[i], sp, timeFormat) {
		p.sh.Errorf("printf: `%c': invalid format character", s[i])
		p.status, p.stop = 1, true
	}
	return i + 1
}

func (p *printfRun) number(s string, i int) (int, int) {
	if i < len(s) && s[i] == '*' {
		a, _ := p.next()
		n, _ := p.integer(a)
		return int(max(min(n, 1<<31), -1<<31)), i + 1
	}
	n := 0
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		if n < 1<<31 {
			n = n*10 + int(s[i]-'0')
		}
		i++
	}
	return n, i
}

func (p *printfRun) convert(c byte, sp spec, timeFormat string) bool {
	switch c {
	case 's':
		a, _ := p.next()
		p.text(a, sp)
	case 'b':
		a, _ := p.next()
		text, stop := percentB(a)
		p.text(text, sp)
		p.stop = p.stop || stop
	case 'q', 'Q':
		a, _ := p.next()
		if c == 'Q' && sp.hasPrec && len(a) > sp.prec {
			a = a[:sp.prec]
			sp.hasPrec = false
		}
		p.text(quote.Backslash(a), sp)
	case 'c':
		a, _ := p.next()
		if a == "" {
			p.pad("\x00", sp, false)
			return true
		}
		p.pad(a[:1], sp, false)
	case 'd', 'i':
		a, _ := p.next()
		n, _ := p.integer(a)
		p.signed(n, sp)
	case 'u', 'o', 'x', 'X':
		a, _ := p.next()
		n, _ := p.integer(a)
		p.unsigned(uint64(n), c, sp)
	case 'e', 'E', 'f', 'F', 'g', 'G', 'a', 'A':
		a, _ := p.next()
		p.float(a, c, sp)
	case 'T':
		p.time(timeFormat, sp)
	case 'n':
		p.next()
	default:
		return false
	}
	return true
}

// percentB is echo's escapes, and octal numbers without the 0, too.
func percentB(s string) (string, bool) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			if n, k := quote.Digits(s[i+1:], 8, 3); k > 0 && s[i+1] != '0' {
				b.WriteByte(byte(n))
				i += k
				continue
			}
			if s[i+1] == '\'' || s[i+1] == '"' || s[i+1] == '?' {
				b.WriteByte(s[i+1])
				i++
				continue
			}
			if s[i+1] == '0' {
				n, k := quote.Digits(s[i+2:], 8, 3)
				b.WriteByte(byte(n))
				i += 1 + k
				continue
			}
			text, stop := quote.DecodeEcho(escapeAt(s[i:]))
			b.WriteString(text)
			if stop {
				return b.String(), true
			}
			i += len(escapeAt(s[i:])) - 1
			continue
		}
		b.WriteByte(s[i])
	}
	return b.String(), false
}

// escapeAt is the one escape at the beginning of s.
func escapeAt(s string) string {
	if s[1] == '\\' || s[1] == 'c' {
		return s[:2]
	}
	if _, used, ok := quote.Escape(s[1:], true); ok {
		return s[:1+used]
	}
	return s[:2]
}

func (p *printfRun) text(s string, sp spec) {
	if sp.hasPrec {
		s = chars.Slice(s, 0, sp.prec)
		if sp.prec == 0 {
			s = ""
		}
	}
	p.pad(s, sp, false)
}

// pad writes s in its width; the precision of text counts bytes in C, and so
// does the width.
func (p *printfRun) pad(s string, sp spec, zero bool) {
	n := sp.width - len(s)
	if n <= 0 {
		p.out.WriteString(s)
		return
	}
	switch {
	case strings.Contains(sp.flags, "-"):
		p.out.WriteString(s + strings.Repeat(" ", n))
	case zero:
		at := 0
		if s != "" && strings.IndexByte("+- ", s[0]) >= 0 {
			at = 1
		}
		if strings.HasPrefix(s[at:], "0x") || strings.HasPrefix(s[at:], "0X") {
			at += 2
		}
		p.out.WriteString(s[:at] + strings.Repeat("0", n) + s[at:])
	default:
		p.out.WriteString(strings.Repeat(" ", n) + s)
	}
}

func (sp spec) zero() bool { return strings.Contains(sp.flags, "0") }

// time is %(format)T: seconds since the epoch, -1 for now, -2 for the start.
func (p *printfRun) time(format string, sp spec) {
	a, given := p.next()
	n := int64(-1)
	if given {
		n = p.seconds(a)
	}
	t := p.sh.Session.Now()
	switch {
	case n == -1:
	case n == -2:
		t = p.sh.Session.Began
	default:
		t = time.Unix(n, 0)
	}
	if format == "" {
		format = "%H:%M:%S"
	}
	p.text(strftime(t.In(zone(p.sh.Vars.Get("TZ"))), format), sp)
}

func (p *printfRun) seconds(a string) int64 {
	n, _ := p.integer(a)
	return n
}

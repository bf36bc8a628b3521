package builtin

import (
	"strings"

	"egressd/hermetic/internal/printf"
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

// directive handles what begins with % and reports its length.
func (p *printfRun) directive(s string) int {
	if strings.HasPrefix(s, "%%") {
		p.out.WriteByte('%')
		return 2
	}
	d, n := printf.Syntax{Lengths: "hlLjzt", Time: true, Star: p.star}.Parse(s)
	p.sh.CheckLen(d.Width)
	p.sh.CheckLen(d.Prec)
	switch {
	case d.Verb == '(':
		p.sh.Errorf("printf: warning: `%c': invalid time format specification", '(')
		p.out.WriteByte('%')
		return 1
	case d.Verb == 0:
		p.sh.Errorf("printf: `%s': missing format character", s)
		p.status, p.stop = 1, true
	case !p.convert(d):
		p.sh.Errorf("printf: `%c': invalid format character", d.Verb)
		p.status, p.stop = 1, true
	}
	if d.Width > 0 || d.Prec > 0 { // Threat: a format of many wide directives -> the sum is bounded, too -> one more width than the limit
		p.sh.CheckLen(p.out.Len())
	}
	return n
}

// star reads a width or a precision from the arguments.
func (p *printfRun) star() (int, bool) {
	a, _ := p.next()
	n, _ := p.integer(a)
	return int(max(min(n, printf.Unbounded), -printf.Unbounded)), true
}

func (p *printfRun) convert(d printf.Directive) bool {
	switch d.Verb {
	case 's', 'b', 'q', 'Q', 'c':
		p.out.WriteString(p.text(d))
	case 'd', 'i':
		a, _ := p.next()
		n, _ := p.integer(a)
		p.out.WriteString(d.Int(n))
	case 'u', 'o', 'x', 'X':
		a, _ := p.next()
		n, _ := p.integer(a)
		p.out.WriteString(d.Uint(uint64(n)))
	case 'e', 'E', 'f', 'F', 'g', 'G', 'a', 'A':
		a, _ := p.next()
		p.out.WriteString(d.Float(p.float(a)))
	case 'T':
		p.out.WriteString(cut(p.time(d.Time), d))
	case 'n':
		p.next()
	default:
		return false
	}
	return true
}

// text is the text of s, b, q, Q and c.
func (p *printfRun) text(d printf.Directive) string {
	a, _ := p.next()
	switch d.Verb {
	case 'b':
		text, stop := percentB(a)
		p.stop = p.stop || stop
		return cut(text, d)
	case 'q':
		return cut(quote.Backslash(a), d)
	case 'Q':
		if d.Prec >= 0 && len(a) > d.Prec {
			a, d.Prec = a[:d.Prec], -1
		}
		return cut(quote.Backslash(a), d)
	case 'c':
		if a == "" {
			a = "\x00"
		}
		return d.Pad(a[:1], 1)
	}
	return cut(a, d)
}

// cut is s in its precision, which counts characters, and its width, which
// counts bytes.
func cut(s string, d printf.Directive) string {
	switch {
	case d.Prec == 0:
		s = ""
	case d.Prec > 0:
		s = chars.Slice(s, 0, d.Prec)
	}
	return d.Pad(s, len(s))
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

package printf

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"egressd/hermetic/internal/gnu"
)

// printf is the command and not the builtin.
func printf(w *gnu.Work) {
	args := w.Args[1:]
	if len(args) == 1 && (args[0] == "--help" || args[0] == "--version") {
		w.Options("FORMAT [ARGUMENT]...", "")
		return
	}
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		w.TryHelp("missing operand")
		return
	}
	p := printer{w: w, args: args[1:]}
	for p.round(args[0]) && len(p.args) > 0 && p.used && w.Ctx.Err() == nil {
		if _, err := w.Out.Write(nil); err != nil {
			return
		}
		p.used = false
	}
	if len(p.args) > 0 && !p.used && !p.stopped {
		w.Complain("warning: ignoring excess arguments, starting with %s", gnu.Quote(p.args[0]))
	}
}

// printer writes a format as often as there are arguments.
type printer struct {
	w       *gnu.Work
	args    []string
	used    bool // a directive took an argument
	stopped bool
}

func (p *printer) next() string {
	p.used = true
	if len(p.args) == 0 {
		return ""
	}
	a := p.args[0]
	p.args = p.args[1:]
	return a
}

// round writes the format once; false: it is over.
func (p *printer) round(format string) bool {
	for i := 0; i < len(format); {
		switch c := format[i]; {
		case c == '\\':
			text, n, stop, ok := unescapePrintf(p.w, format[i:])
			if stop || !ok {
				p.stopped = true
				return false
			}
			p.w.Out.Write(text)
			i += n
		case c == '%' && i+1 < len(format) && format[i+1] == '%':
			p.w.Out.WriteByte('%')
			i += 2
		case c == '%':
			n := p.directive(format[i:])
			if n == 0 {
				p.stopped = true
				return false
			}
			i += n
		default:
			p.w.Out.WriteByte(c)
			i++
		}
	}
	return true
}

// directive writes what begins with a "%"; its length, or 0 to stop.
func (p *printer) directive(s string) int {
	d, n := Syntax{Lengths: "hlLjzt", Star: p.star}.Parse(s)
	if n == 0 {
		return 0
	}
	if most := int(min(p.w.Budget.Limits.String, Unbounded-1)); d.Width > most || d.Prec > most {
		p.w.Die(1, "field width is too large here")
		return 0
	}
	if strings.IndexByte("diouxXfFeEgGaAcsbq", d.Verb) < 0 {
		p.w.Die(1, "%s: invalid conversion specification", s[:n])
		return 0
	}
	if !p.convert(d) {
		return 0
	}
	return n
}

// star reads a width or a precision from the arguments.
func (p *printer) star() (int, bool) {
	v := p.integer(p.next())
	if v > 1<<31-1 || v < -1<<31 {
		p.w.Die(1, "invalid field width: %s", gnu.Quote(fmt.Sprint(v)))
		return 0, false
	}
	return int(v), true
}

// convert writes one argument; false after a \c.
func (p *printer) convert(d Directive) bool {
	arg := p.next()
	switch d.Verb {
	case 'c':
		if arg != "" {
			arg = arg[:1]
		}
		p.w.Out.WriteString(d.Pad(arg, len(arg)))
	case 's':
		if d.Prec >= 0 {
			arg = arg[:min(len(arg), d.Prec)]
		}
		p.w.Out.WriteString(d.Pad(arg, len(arg)))
	case 'b':
		text, stop := unescapeEcho(arg)
		p.w.Out.WriteString(text)
		if stop {
			p.stopped = true
			return false
		}
	case 'q':
		if arg == "" {
			p.w.Out.WriteString("''")
		} else {
			p.w.Out.WriteString(gnu.QuoteName(arg))
		}
	case 'd', 'i':
		p.w.Out.WriteString(d.Int(p.integer(arg)))
	case 'o', 'u', 'x', 'X':
		p.w.Out.WriteString(d.Uint(p.unsigned(arg)))
	default:
		p.w.Out.WriteString(d.Float(p.float(arg)))
	}
	return true
}

// character is the value of an argument that begins with a quote.
func (p *printer) character(s string) (int64, bool) {
	if s == "" || s[0] != '\'' && s[0] != '"' {
		return 0, false
	}
	r, n := utf8.DecodeRuneInString(s[1:])
	if n == 0 {
		p.w.Fault("%s: expected a numeric value", gnu.Quote(s))
		return 0, true
	}
	if r == utf8.RuneError && n == 1 {
		r = rune(s[1])
	}
	if rest := s[1+n:]; rest != "" {
		p.w.Complain("warning: %s: character(s) following character constant have been ignored", rest)
	}
	return int64(r), true
}

// verify complains of what could not be read of s.
func (p *printer) verify(s string, n int, err error) {
	switch {
	case errors.Is(err, strconv.ErrRange):
		p.w.Fault("%s: Numerical result out of range", gnu.Quote(s))
	case n == 0:
		p.w.Fault("%s: expected a numeric value", gnu.Quote(s))
	case n < len(s):
		p.w.Fault("%s: value not completely converted", gnu.Quote(s))
	}
}

// cNumber is the beginning of s that strtol(3) with base 0 reads.
func cNumber(s string) (text string, base, n int) {
	i := len(s) - len(strings.TrimLeft(s, " \t\n\v\f\r"))
	sign := ""
	if i < len(s) && (s[i] == '-' || s[i] == '+') {
		sign = strings.TrimPrefix(s[i:i+1], "+")
		i++
	}
	base = 10
	rest := strings.ToLower(s[i:])
	switch {
	case strings.HasPrefix(rest, "0x") && len(rest) > 2 && strings.IndexByte("0123456789abcdef", rest[2]) >= 0:
		base = 16
		i += 2
	case strings.HasPrefix(rest, "0"):
		base = 8
	}
	from := i
	for i < len(s) {
		if _, k := digitsOf(s[i:i+1], base, 1); k == 0 {
			break
		}
		i++
	}
	if i == from {
		return "0", 10, 0
	}
	return sign + s[from:i], base, i
}

func (p *printer) integer(s string) int64 {
	if v, ok := p.character(s); ok {
		return v
	}
	text, base, n := cNumber(s)
	v, err := strconv.ParseInt(text, base, 64)
	if s != "" {
		p.verify(s, n, err)
	}
	return v
}

func (p *printer) unsigned(s string) uint64 {
	if v, ok := p.character(s); ok {
		return uint64(v)
	}
	text, base, n := cNumber(s)
	plain, negative := strings.CutPrefix(text, "-")
	v, err := strconv.ParseUint(plain, base, 64)
	if s != "" {
		p.verify(s, n, err)
	}
	if negative {
		return -v
	}
	return v
}

func (p *printer) float(s string) gnu.Float {
	if v, ok := p.character(s); ok {
		return gnu.NewFloat(float64(v))
	}
	f, n := gnu.ParseFloat(s)
	if s != "" {
		p.verify(s, n, nil)
	}
	return f
}

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
	i := 1
	for i < len(s) && strings.IndexByte("-+ #0'", s[i]) >= 0 {
		i++
	}
	flags := s[1:i]
	width, prec := 0, -1
	number := func() (int, bool) {
		if i < len(s) && s[i] == '*' {
			i++
			v := p.integer(p.next())
			if v > 1<<31-1 || v < -1<<31 {
				p.w.Die(1, "invalid field width: %s", gnu.Quote(fmt.Sprint(v)))
				return 0, false
			}
			return int(v), true
		}
		v := 0
		for ; i < len(s) && s[i] >= '0' && s[i] <= '9'; i++ {
			v = min(v*10+int(s[i]-'0'), 1<<31)
		}
		return v, true
	}
	var ok bool
	if width, ok = number(); !ok {
		return 0
	}
	if width < 0 {
		flags, width = flags+"-", -width
	}
	if i < len(s) && s[i] == '.' {
		i++
		if prec, ok = number(); !ok {
			return 0
		}
	}
	if most := int(min(p.w.Budget.Limits.String, 1<<31-1)); width > most || prec > most {
		p.w.Die(1, "field width is too large here")
		return 0
	}
	for i < len(s) && strings.IndexByte("hlLjzt", s[i]) >= 0 {
		i++
	}
	if i >= len(s) || strings.IndexByte("diouxXfFeEgGaAcsbq", s[i]) < 0 {
		p.w.Die(1, "%s: invalid conversion specification", s[:min(len(s), i+1)])
		return 0
	}
	if !p.convert(s[i], flags, width, prec) {
		return 0
	}
	return i + 1
}

// convert writes one argument; false after a \c.
func (p *printer) convert(verb byte, flags string, width, prec int) bool {
	arg := p.next()
	switch verb {
	case 'c':
		if arg != "" {
			arg = arg[:1]
		}
		p.pad(arg, flags, width)
	case 's':
		if prec >= 0 {
			arg = arg[:min(len(arg), prec)]
		}
		p.pad(arg, flags, width)
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
		p.pad(digits(p.integer(arg), flags, width, prec), flags, width)
	case 'o', 'u', 'x', 'X':
		p.pad(unsignedDigits(p.unsigned(arg), verb, flags, width, prec), flags, width)
	default:
		p.w.Out.WriteString(p.float(arg).Format(flags, width, prec, verb))
	}
	return true
}

func (p *printer) pad(s, flags string, width int) {
	fill := strings.Repeat(" ", max(0, width-len(s)))
	if strings.Contains(flags, "-") {
		p.w.Out.WriteString(s + fill)
	} else {
		p.w.Out.WriteString(fill + s)
	}
}

// digits is %d without the blanks around.
func digits(v int64, flags string, width, prec int) string {
	sign, s := "", strconv.FormatInt(v, 10)
	switch {
	case v < 0:
		sign, s = "-", s[1:]
	case strings.Contains(flags, "+"):
		sign = "+"
	case strings.Contains(flags, " "):
		sign = " "
	}
	return sign + zeroed(s, flags, width-len(sign), prec)
}

func zeroed(s, flags string, width, prec int) string {
	if prec == 0 && s == "0" {
		s = ""
	}
	least := prec
	if prec < 0 && strings.Contains(flags, "0") && !strings.Contains(flags, "-") {
		least = width
	}
	return strings.Repeat("0", max(0, least-len(s))) + s
}

func unsignedDigits(v uint64, verb byte, flags string, width, prec int) string {
	base := map[byte]int{'o': 8, 'u': 10, 'x': 16, 'X': 16}[verb]
	s, prefix := strconv.FormatUint(v, base), ""
	if strings.Contains(flags, "#") && v != 0 {
		switch verb {
		case 'o':
			prec = max(prec, len(s)+1)
		case 'x', 'X':
			prefix = "0" + string(verb)
		}
	}
	s = zeroed(s, flags, width-len(prefix), prec)
	if verb == 'X' {
		s = strings.ToUpper(s)
	}
	return prefix + s
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

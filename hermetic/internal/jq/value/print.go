package value

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Printer writes values as JSON.
type Printer struct {
	Indent string // "": all on one line
	Ascii  bool
	Sorted bool
	Colors bool
	B      []byte
}

// The colors of jq 1.6.
const (
	colorNull   = "\x1b[1;30m"
	colorPlain  = "\x1b[0;39m"
	colorString = "\x1b[0;32m"
	colorNested = "\x1b[1;39m"
	colorKey    = "\x1b[34;1m"
	colorReset  = "\x1b[0m"
)

// Tojson is v on one line.
func Tojson(v any) string {
	var p Printer
	p.Value(v, 0)
	return string(p.B)
}

const Deepest = 10000

// Value appends v to B.
func (p *Printer) Value(v any, depth int) {
	color := ""
	if p.Colors {
		color = colorOf(v)
		p.B = append(p.B, color...)
	}
	switch v := v.(type) {
	case nil:
		p.B = append(p.B, "null"...)
	case bool:
		p.B = strconv.AppendBool(p.B, v)
	case string:
		p.text(v)
	case []any:
		p.array(v, depth, color)
	case *Object:
		p.object(v, depth, color)
	default:
		p.B = append(p.B, FormatNumber(v)...)
	}
	if p.Colors {
		p.B = append(p.B, colorReset...)
	}
}

func colorOf(v any) string {
	switch v.(type) {
	case nil:
		return colorNull
	case string:
		return colorString
	case []any, *Object:
		return colorNested
	}
	return colorPlain
}

func (p *Printer) line(depth int) {
	if p.Indent != "" {
		p.B = append(p.B, '\n')
		for range depth {
			p.B = append(p.B, p.Indent...)
		}
	}
}

func (p *Printer) array(a []any, depth int, color string) {
	if depth > Deepest {
		p.B = append(p.B, "<skipped: too deep>"...)
		return
	}
	p.B = append(p.B, '[')
	for i, v := range a {
		if i > 0 {
			p.B = append(p.B, color...)
			p.B = append(p.B, ',')
		}
		p.line(depth + 1)
		p.Value(v, depth+1)
	}
	p.B = append(p.B, color...)
	if len(a) > 0 {
		p.line(depth)
	}
	p.B = append(p.B, color...)
	p.B = append(p.B, ']')
}

func (p *Printer) object(o *Object, depth int, color string) {
	if depth > Deepest {
		p.B = append(p.B, "<skipped: too deep>"...)
		return
	}
	p.B = append(p.B, '{')
	keys := o.Keys()
	if p.Sorted {
		keys = o.Sorted()
	}
	for i, k := range keys {
		if i > 0 {
			p.B = append(p.B, color...)
			p.B = append(p.B, ',')
		}
		p.line(depth + 1)
		if p.Colors {
			p.B = append(p.B, colorReset+colorKey...)
		}
		p.text(k)
		if p.Colors {
			p.B = append(p.B, colorReset+color...)
		}
		p.B = append(p.B, ':')
		if p.Indent != "" {
			p.B = append(p.B, ' ')
		}
		if p.Colors {
			p.B = append(p.B, colorReset...)
		}
		v, _ := o.Get(k)
		p.Value(v, depth+1)
	}
	p.B = append(p.B, color...)
	if len(keys) > 0 {
		p.line(depth)
	}
	p.B = append(p.B, color...)
	p.B = append(p.B, '}')
}

func (p *Printer) text(s string) {
	p.B = append(p.B, '"')
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case r == '"' || r == '\\':
			p.B = append(p.B, '\\', byte(r))
		case r < 0x20 && strings.ContainsRune("\b\f\n\r\t", r):
			p.B = append(p.B, '\\', "bfnrt"[strings.IndexByte("\b\f\n\r\t", byte(r))])
		case r < 0x20 || r == 0x7f || p.Ascii && r > 0x7f && r < 0x10000:
			p.B = fmt.Appendf(p.B, `\u%04x`, r)
		case p.Ascii && r >= 0x10000:
			r -= 0x10000
			p.B = fmt.Appendf(p.B, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		default:
			p.B = utf8.AppendRune(p.B, r)
		}
		s = s[n:]
	}
	p.B = append(p.B, '"')
}

// FormatNumber is the shortest text that reads as the same number, with an
// exponent where jq has one; infinities are the largest numbers.
func FormatNumber(v any) string {
	if l, ok := v.(Literal); ok {
		return l.Text
	}
	f, _ := Number(v)
	switch {
	case math.IsNaN(f):
		return "null"
	case math.IsInf(f, 0):
		f = math.Copysign(math.MaxFloat64, f)
	}
	if f == math.Trunc(f) && math.Abs(f) < 1e15 && (f != 0 || !math.Signbit(f)) {
		return strconv.FormatInt(int64(f), 10)
	}
	e := strconv.FormatFloat(f, 'e', -1, 64)
	sign := ""
	if e[0] == '-' {
		sign, e = "-", e[1:]
	}
	mantissa, exp, _ := strings.Cut(e, "e")
	digits := strings.Replace(mantissa, ".", "", 1)
	x, _ := strconv.Atoi(exp)
	point := x + 1
	switch {
	case f == 0:
		return sign + "0"
	case point <= -4 || point > len(digits)+15:
		return sign + mantissa + "e" + exp
	case point <= 0:
		return sign + "0." + strings.Repeat("0", -point) + digits
	case point >= len(digits):
		return sign + digits + strings.Repeat("0", point-len(digits))
	}
	return sign + digits[:point] + "." + digits[point:]
}

package data

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// printer writes values as JSON.
type printer struct {
	indent string // "": all on one line
	ascii  bool
	sorted bool
	colors bool
	b      []byte
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

// tojson is v on one line.
func tojson(v any) string {
	var p printer
	p.value(v, 0)
	return string(p.b)
}

const deepest = 10000

func (p *printer) value(v any, depth int) {
	color := ""
	if p.colors {
		color = colorOf(v)
		p.b = append(p.b, color...)
	}
	switch v := v.(type) {
	case nil:
		p.b = append(p.b, "null"...)
	case bool:
		p.b = strconv.AppendBool(p.b, v)
	case string:
		p.text(v)
	case []any:
		p.array(v, depth, color)
	case *object:
		p.object(v, depth, color)
	default:
		p.b = append(p.b, formatNumber(v)...)
	}
	if p.colors {
		p.b = append(p.b, colorReset...)
	}
}

func colorOf(v any) string {
	switch v.(type) {
	case nil:
		return colorNull
	case string:
		return colorString
	case []any, *object:
		return colorNested
	}
	return colorPlain
}

func (p *printer) line(depth int) {
	if p.indent != "" {
		p.b = append(p.b, '\n')
		for range depth {
			p.b = append(p.b, p.indent...)
		}
	}
}

func (p *printer) array(a []any, depth int, color string) {
	if depth > deepest {
		p.b = append(p.b, "<skipped: too deep>"...)
		return
	}
	p.b = append(p.b, '[')
	for i, v := range a {
		if i > 0 {
			p.b = append(p.b, color...)
			p.b = append(p.b, ',')
		}
		p.line(depth + 1)
		p.value(v, depth+1)
	}
	p.b = append(p.b, color...)
	if len(a) > 0 {
		p.line(depth)
	}
	p.b = append(p.b, color...)
	p.b = append(p.b, ']')
}

func (p *printer) object(o *object, depth int, color string) {
	if depth > deepest {
		p.b = append(p.b, "<skipped: too deep>"...)
		return
	}
	p.b = append(p.b, '{')
	keys := o.keys()
	if p.sorted {
		keys = o.sorted()
	}
	for i, k := range keys {
		if i > 0 {
			p.b = append(p.b, color...)
			p.b = append(p.b, ',')
		}
		p.line(depth + 1)
		if p.colors {
			p.b = append(p.b, colorReset+colorKey...)
		}
		p.text(k)
		if p.colors {
			p.b = append(p.b, colorReset+color...)
		}
		p.b = append(p.b, ':')
		if p.indent != "" {
			p.b = append(p.b, ' ')
		}
		if p.colors {
			p.b = append(p.b, colorReset...)
		}
		v, _ := o.get(k)
		p.value(v, depth+1)
	}
	p.b = append(p.b, color...)
	if len(keys) > 0 {
		p.line(depth)
	}
	p.b = append(p.b, color...)
	p.b = append(p.b, '}')
}

func (p *printer) text(s string) {
	p.b = append(p.b, '"')
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case r == '"' || r == '\\':
			p.b = append(p.b, '\\', byte(r))
		case r < 0x20 && strings.ContainsRune("\b\f\n\r\t", r):
			p.b = append(p.b, '\\', "bfnrt"[strings.IndexByte("\b\f\n\r\t", byte(r))])
		case r < 0x20 || r == 0x7f || p.ascii && r > 0x7f && r < 0x10000:
			p.b = fmt.Appendf(p.b, `\u%04x`, r)
		case p.ascii && r >= 0x10000:
			r -= 0x10000
			p.b = fmt.Appendf(p.b, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		default:
			p.b = utf8.AppendRune(p.b, r)
		}
		s = s[n:]
	}
	p.b = append(p.b, '"')
}

// formatNumber is the shortest text that reads as the same number, with an
// exponent where jq has one; infinities are the largest numbers.
func formatNumber(v any) string {
	if l, ok := v.(literal); ok {
		return l.text
	}
	f, _ := number(v)
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

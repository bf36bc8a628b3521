package value

import (
	"errors"
	"math"
	"math/big"
	"strings"
	"unicode/utf8"

	"egressd/hermetic/internal/printf"
)

// MaxWidth bounds the width and the precision of a conversion.
const MaxWidth = 1 << 20

var errFormat = errors.New("the string is too long")

// Sprintf formats as printf(3) and gawk do; most bounds the result.
func Sprintf(format string, args []Value, most int) (string, error) {
	var b strings.Builder
	next := func() (Value, bool) {
		if len(args) == 0 {
			return Value{}, false
		}
		v := args[0]
		args = args[1:]
		return v, true
	}
	syntax := printf.Syntax{Lengths: "hlLqjzt", Star: func() (int, bool) {
		v, _ := next()
		return int(max(min(v.Number(), MaxWidth+1), -MaxWidth-1)), true
	}}
	for format != "" {
		at := strings.IndexByte(format, '%')
		if at < 0 {
			b.WriteString(format)
			break
		}
		b.WriteString(format[:at])
		format = format[at:]
		if strings.HasPrefix(format, "%%") {
			b.WriteByte('%')
			format = format[2:]
			continue
		}
		d, n := syntax.Parse(format)
		if d.Verb == 0 && n == len(format) { // it is cut off
			b.WriteString(format)
			break
		}
		text := format[:n]
		format = format[n:]
		if strings.IndexByte("cdiouxXeEfFgGaAs", d.Verb) < 0 {
			b.WriteString(text)
			continue
		}
		if d.Width > most || d.Prec > most || b.Len() > most {
			return "", errFormat
		}
		v, ok := next()
		if !ok {
			return "", errors.New("not enough arguments to satisfy format string\n\t`" + text + "'\n\t ^ ran out for this one")
		}
		b.WriteString(formatted(d, v))
	}
	return b.String(), nil
}

func formatted(d printf.Directive, v Value) string {
	switch d.Verb {
	case 's':
		t := v.Text("%.6g")
		if d.Prec >= 0 {
			t = FirstRunes(t, d.Prec)
		}
		return d.Pad(t, utf8.RuneCountInString(t))
	case 'c':
		t := character(v)
		return d.Pad(t, utf8.RuneCountInString(t))
	}
	n := v.Number()
	switch {
	case math.IsNaN(n) || math.IsInf(n, 0):
		t := infinite(n)
		return d.Pad(t, len(t))
	case strings.IndexByte("diouxX", d.Verb) >= 0:
		return integer(d, math.Trunc(n))
	}
	return d.Double(n)
}

// integer is a conversion of a whole number of any size.
func integer(d printf.Directive, n float64) string {
	if n < 0 && d.Base() != 10 { // it has no such form
		d.Verb, d.Alt = 'd', false
	}
	whole, _ := new(big.Float).SetFloat64(math.Abs(n)).Int(nil)
	digits := whole.Text(d.Base())
	if d.Verb == 'o' && d.Alt { // gawk writes the 0 before those of the precision, and none before 0
		if n != 0 {
			digits = "0" + strings.Repeat("0", max(0, d.Prec-len(digits))) + digits
		}
		d.Alt = false
	}
	return d.Integer(n < 0, digits)
}

func character(v Value) string {
	if n, ok := v.Numeric(); ok && v.Kind != VInput || ok && v.Kind == VNumber {
		if v.Kind == VUnset {
			return "\x00"
		}
		if n >= 0 && n <= utf8.MaxRune {
			return string(rune(n))
		}
		return string([]byte{byte(int64(n))})
	}
	if n, ok := v.Numeric(); ok {
		return string(rune(n))
	}
	if v.S == "" {
		return "\x00"
	}
	return FirstRunes(v.S, 1)
}

// FirstRunes is the first n characters of s.
func FirstRunes(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

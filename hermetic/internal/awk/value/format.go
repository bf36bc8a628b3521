package value

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"
)

// MaxWidth bounds the width and the precision of a conversion.
const MaxWidth = 1 << 20

var errFormat = errors.New("the string is too long")

// spec is one conversion: "%-5.2f".
type spec struct {
	minus, plus, space, alt, zero bool
	width, precision              int // precision -1: none
	verb                          byte
}

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
		s, n := parseSpec(format, next)
		if n == 0 {
			b.WriteString(format)
			break
		}
		text := format[:n]
		format = format[n:]
		if strings.IndexByte("cdiouxXeEfFgGaAs", s.verb) < 0 {
			b.WriteString(text)
			continue
		}
		if s.width > most || s.precision > most || b.Len() > most {
			return "", errFormat
		}
		v, ok := next()
		if !ok {
			return "", errors.New("not enough arguments to satisfy format string\n\t`" + text + "'\n\t ^ ran out for this one")
		}
		b.WriteString(s.format(v))
	}
	return b.String(), nil
}

// parseSpec reads a conversion; n 0: it is cut off.
func parseSpec(f string, next func() (Value, bool)) (s spec, n int) {
	s.precision = -1
	i := 1
	for ; i < len(f); i++ {
		switch f[i] {
		case '-':
			s.minus = true
		case '+':
			s.plus = true
		case ' ':
			s.space = true
		case '#':
			s.alt = true
		case '0':
			s.zero = true
		case '\'':
		default:
			goto width
		}
	}
width:
	number := func() int {
		if i < len(f) && f[i] == '*' {
			i++
			v, _ := next()
			return int(max(min(v.Number(), MaxWidth+1), -MaxWidth-1))
		}
		w := 0
		for ; i < len(f) && IsDigit(f[i]); i++ {
			w = min(w*10+int(f[i]-'0'), MaxWidth+1)
		}
		return w
	}
	if s.width = number(); s.width < 0 {
		s.minus, s.width = true, -s.width
	}
	if i < len(f) && f[i] == '.' {
		i++
		s.precision = number()
		if s.precision < 0 {
			s.precision = -1
		}
	}
	for i < len(f) && strings.IndexByte("hlLqjzt", f[i]) >= 0 {
		i++
	}
	if i >= len(f) {
		return s, 0
	}
	s.verb = f[i]
	return s, i + 1
}

func (s *spec) format(v Value) string {
	switch s.verb {
	case 's':
		t := v.Text("%.6g")
		if s.precision >= 0 {
			t = FirstRunes(t, s.precision)
		}
		return s.pad(t, false)
	case 'c':
		return s.pad(character(v), false)
	case 'd', 'i', 'o', 'u', 'x', 'X':
		n := v.Number()
		if math.IsNaN(n) || math.IsInf(n, 0) {
			return s.pad(infinite(n), false)
		}
		return s.integer(math.Trunc(n))
	}
	return s.float(v.Number())
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

// pad fills to the width, with zeros after the sign where they are asked for.
func (s *spec) pad(t string, zeros bool) string {
	n := s.width - utf8.RuneCountInString(t)
	switch {
	case n <= 0:
		return t
	case s.minus:
		return t + strings.Repeat(" ", n)
	case zeros:
		sign := 0
		if t != "" && (t[0] == '-' || t[0] == '+' || t[0] == ' ') {
			sign = 1
		}
		if strings.HasPrefix(t[sign:], "0x") || strings.HasPrefix(t[sign:], "0X") {
			sign += 2
		}
		return t[:sign] + strings.Repeat("0", n) + t[sign:]
	}
	return strings.Repeat(" ", n) + t
}

func (s *spec) sign(negative bool) string {
	switch {
	case negative:
		return "-"
	case s.plus:
		return "+"
	case s.space:
		return " "
	}
	return ""
}

func (s *spec) integer(n float64) string {
	base := map[byte]int{'o': 8, 'x': 16, 'X': 16}[s.verb]
	if base == 0 {
		base = 10
	}
	if base != 10 && n < 0 { // gawk prints what has no such form as a float
		f := spec{width: s.width, precision: s.precision, minus: s.minus, zero: s.zero, verb: 'd'}
		return f.integer(n)
	}
	big, _ := new(big.Float).SetFloat64(math.Abs(n)).Int(nil)
	digits := big.Text(base)
	if s.verb == 'X' {
		digits = strings.ToUpper(digits)
	}
	if s.precision == 0 && digits == "0" {
		digits = ""
	}
	if k := s.precision - len(digits); k > 0 {
		digits = strings.Repeat("0", k) + digits
	}
	prefix := ""
	if s.alt && n != 0 {
		prefix = map[byte]string{'o': "0", 'x': "0x", 'X': "0X"}[s.verb]
	}
	sign := ""
	if base == 10 && s.verb != 'u' || n < 0 {
		sign = s.sign(n < 0)
	}
	return s.pad(sign+prefix+digits, s.zero && s.precision < 0)
}

func (s *spec) float(n float64) string {
	if math.IsNaN(n) || math.IsInf(n, 0) {
		t := infinite(n)
		return s.pad(t, false)
	}
	precision := s.precision
	if precision < 0 && s.verb != 'a' && s.verb != 'A' {
		precision = 6
	}
	verb := s.verb
	abs := math.Abs(n)
	var t string
	switch verb {
	case 'a', 'A':
		t = fmt.Sprintf("%x", abs)
		if precision >= 0 {
			t = fmt.Sprintf("%.*x", precision, abs)
		}
		t = strings.Replace(t, "p+0", "p+", 1)
		t = strings.Replace(t, "p-0", "p-", 1)
		if verb == 'A' {
			t = strings.ToUpper(t)
		}
	case 'g', 'G':
		if precision == 0 {
			precision = 1
		}
		t = strconv.FormatFloat(abs, verb, precision, 64)
		if s.alt {
			t = fmt.Sprintf("%#.*g", precision, abs)
		}
	case 'F':
		t = strconv.FormatFloat(abs, 'f', precision, 64)
	default:
		t = strconv.FormatFloat(abs, verb, precision, 64)
	}
	if s.alt && precision == 0 && (verb == 'f' || verb == 'F') {
		t += "."
	}
	return s.pad(s.sign(math.Signbit(n))+t, s.zero)
}

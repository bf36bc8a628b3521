package gnu

import (
	"math"
	"math/big"
	"strings"
)

// Float is a C long double of 64 bits of mantissa, as x86 has them.
type Float struct {
	V   *big.Float
	NaN bool
}

// FloatBits is the mantissa of a Float.
const FloatBits = 64

// NewFloat makes a Float of x.
func NewFloat(x float64) Float {
	if math.IsNaN(x) {
		return Float{V: new(big.Float).SetPrec(FloatBits), NaN: true}
	}
	return Float{V: new(big.Float).SetPrec(FloatBits).SetFloat64(x)}
}

// ParseFloat reads the longest beginning of s that strtold(3) reads; n is its
// length, 0 when there is none.
func ParseFloat(s string) (f Float, n int) {
	i := len(s) - len(strings.TrimLeft(s, " \t\n\v\f\r"))
	from := i
	if i < len(s) && (s[i] == '+' || s[i] == '-') {
		i++
	}
	negative := i > from && s[from] == '-'
	rest := strings.ToLower(s[i:min(len(s), i+8)])
	switch {
	case strings.HasPrefix(rest, "infinity"):
		return Float{V: new(big.Float).SetInf(negative)}, i + 8
	case strings.HasPrefix(rest, "inf"):
		return Float{V: new(big.Float).SetInf(negative)}, i + 3
	case strings.HasPrefix(rest, "nan"):
		f := NewFloat(math.NaN())
		if negative {
			f.V.Neg(f.V)
		}
		return f, i + 3
	}
	digits, exp := "0123456789", "e"
	if strings.HasPrefix(rest, "0x") {
		if m := mantissa(s[i+2:], "0123456789abcdef"); m > 0 {
			digits, exp = "0123456789abcdef", "p"
			i += 2
		}
	}
	m := mantissa(s[i:], digits)
	if m == 0 {
		return NewFloat(0), 0
	}
	i += m
	i += exponent(s[i:], exp)
	return parseFloat(s[from:i]), i
}

func parseFloat(text string) Float {
	v, _, err := big.ParseFloat(strings.TrimPrefix(clampExponent(text), "+"), 0, FloatBits, big.ToNearestEven)
	if v == nil || err != nil && !v.IsInf() {
		return NewFloat(0)
	}
	if !v.IsInf() && v.MantExp(nil) > 16384 {
		v = new(big.Float).SetInf(v.Signbit())
	}
	return Float{V: v}
}

// clampExponent keeps an exponent to what can matter, so that parsing is cheap.
func clampExponent(text string) string {
	mark := "e"
	if strings.ContainsAny(text, "xX") {
		mark = "p"
	} else {
		sign := ""
		if text != "" && (text[0] == '-' || text[0] == '+') {
			sign, text = text[:1], text[1:]
		}
		for len(text) > 1 && text[0] == '0' && text[1] >= '0' && text[1] <= '9' {
			text = text[1:] // "010" is ten here, too
		}
		text = sign + text
	}
	at := strings.LastIndexAny(text, mark+strings.ToUpper(mark))
	if at < 0 {
		return text
	}
	e := strings.TrimLeft(text[at+1:], "+-0")
	if len(e) <= 5 {
		return text
	}
	sign := ""
	if text[at+1] == '-' {
		sign = "-"
	}
	return text[:at+1] + sign + "99999"
}

func mantissa(s, digits string) int {
	seen, point, i := false, false, 0
	for ; i < len(s); i++ {
		c := s[i] | 0x20
		switch {
		case s[i] == '.' && !point:
			point = true
		case s[i] != '.' && strings.IndexByte(digits, c) >= 0 && s[i] >= '0':
			seen = true
		default:
			if !seen {
				return 0
			}
			return i
		}
	}
	if !seen {
		return 0
	}
	return i
}

func exponent(s, mark string) int {
	if s == "" || s[0]|0x20 != mark[0] {
		return 0
	}
	i := 1
	if i < len(s) && (s[i] == '+' || s[i] == '-') {
		i++
	}
	from := i
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		i++
	}
	if i == from {
		return 0
	}
	return i
}

// Format writes f as printf(3) does: flags out of "-+ #0'", width, precision
// (-1: none) and one of the verbs aAeEfFgG.
func (f Float) Format(flags string, width, prec int, verb byte) string {
	sign := ""
	switch {
	case f.V.Signbit():
		sign = "-"
	case strings.Contains(flags, "+"):
		sign = "+"
	case strings.Contains(flags, " "):
		sign = " "
	}
	body := f.body(flags, prec, verb|0x20)
	if f.NaN || f.V.IsInf() {
		flags = strings.ReplaceAll(flags, "0", "")
	}
	if verb < 'a' {
		body = strings.ToUpper(body)
	}
	pad := max(0, width-len(sign)-len(body))
	switch {
	case strings.Contains(flags, "-"):
		return sign + body + strings.Repeat(" ", pad)
	case strings.Contains(flags, "0") && verb|0x20 == 'a':
		return sign + body[:2] + strings.Repeat("0", pad) + body[2:]
	case strings.Contains(flags, "0"):
		return sign + strings.Repeat("0", pad) + body
	}
	return strings.Repeat(" ", pad) + sign + body
}

// body is the text without sign and padding.
func (f Float) body(flags string, prec int, verb byte) string {
	if f.NaN {
		return "nan"
	}
	v := new(big.Float).Abs(f.V)
	if v.IsInf() {
		return "inf"
	}
	alternate := strings.Contains(flags, "#")
	if verb == 'a' {
		return hexFloat(v, prec, alternate)
	}
	if prec < 0 {
		prec = 6
	}
	if verb == 'g' && prec == 0 {
		prec = 1
	}
	s := v.Text(verb, prec)
	if verb == 'g' && alternate {
		return alternateG(v, prec)
	}
	if alternate && !strings.Contains(s, ".") {
		if at := strings.IndexByte(s, 'e'); at >= 0 {
			return s[:at] + "." + s[at:]
		}
		return s + "."
	}
	return s
}

// alternateG is %#g: zeros at the end stay.
func alternateG(v *big.Float, prec int) string {
	e := v.Text('e', prec-1)
	at := strings.IndexByte(e, 'e')
	x := 0
	for _, c := range e[at+2:] {
		x = x*10 + int(c-'0')
	}
	if e[at+1] == '-' {
		x = -x
	}
	if x < -4 || x >= prec {
		if !strings.Contains(e, ".") {
			return e[:at] + "." + e[at:]
		}
		return e
	}
	s := v.Text('f', prec-1-x)
	if !strings.Contains(s, ".") {
		s += "."
	}
	return s
}

// hexFloat is %La of x86: four bits before the point.
func hexFloat(v *big.Float, prec int, alternate bool) string {
	m := new(big.Float)
	exp := v.MantExp(m)
	digits := make([]byte, 16)
	if v.Sign() == 0 {
		exp = 4
		copy(digits, "0000000000000000")
	} else {
		n, _ := m.SetMantExp(m, 64).Uint64()
		if drop := (15 - prec) * 4; prec >= 0 && prec < 15 {
			half := uint64(1) << (drop - 1)
			rest := n & (half<<1 - 1)
			n &^= half<<1 - 1
			if rest > half || rest == half && n&(half<<1) != 0 {
				if n += half << 1; n == 0 {
					n, exp = 1<<63, exp+1
				}
			}
		}
		for i := range digits {
			digits[i] = "0123456789abcdef"[n>>(60-4*i)&15]
		}
	}
	tail := strings.TrimRight(string(digits[1:]), "0")
	if prec >= 0 {
		tail = (string(digits[1:]) + strings.Repeat("0", max(0, prec-15)))[:prec]
	}
	if tail != "" || alternate {
		tail = "." + tail
	}
	sign, e := "+", exp-4
	if e < 0 {
		sign, e = "-", -e
	}
	return "0x" + string(digits[0]) + tail + "p" + sign + big.NewInt(int64(e)).String()
}

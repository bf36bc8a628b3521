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

package printf

import (
	"math"
	"math/big"
	"strconv"
	"strings"

	"egressd/hermetic/internal/gnu"
)

// Float writes a long double with one of the conversions aAeEfFgG, as bash and
// the GNU tools do.
func (d Directive) Float(f gnu.Float) string {
	switch {
	case f.NaN:
		return d.number(d.sign(f.V.Signbit()), d.cased("nan"), false)
	case f.V.IsInf():
		return d.number(d.sign(f.V.Signbit()), d.cased("inf"), false)
	}
	v := new(big.Float).Abs(f.V)
	if d.Verb|0x20 == 'a' {
		return d.hex(f.V.Signbit(), longHex(v, d.Prec, d.Alt))
	}
	return d.decimal(f.V.Signbit(), v.Text)
}

// Double writes a finite double with one of the conversions aAeEfFgG, as awk
// does; it differs from Float in the first digit of %a.
func (d Directive) Double(f float64) string {
	v := math.Abs(f)
	if d.Verb|0x20 == 'a' {
		return d.hex(math.Signbit(f), doubleHex(v, d.Prec, d.Alt))
	}
	return d.decimal(math.Signbit(f), func(verb byte, prec int) string { return strconv.FormatFloat(v, verb, prec, 64) })
}

func (d Directive) hex(negative bool, s string) string {
	return d.number(d.sign(negative)+d.cased(s[:2]), d.cased(s[2:]), true)
}

// decimal writes a number that text formats without a sign.
func (d Directive) decimal(negative bool, text func(verb byte, prec int) string) string {
	verb, prec := d.Verb|0x20, d.Prec
	if prec < 0 {
		prec = 6
	}
	if verb == 'g' && prec == 0 {
		prec = 1
	}
	if verb == 'g' && d.Alt {
		verb, prec = general(text, prec)
	}
	s := text(verb, prec)
	if d.Alt && !strings.Contains(s, ".") {
		if at := strings.IndexByte(s, 'e'); at >= 0 {
			s = s[:at] + "." + s[at:]
		} else {
			s += "."
		}
	}
	return d.number(d.sign(negative), d.cased(s), true)
}

// general is the conversion that %#g stands for: the zeros at the end stay.
func general(text func(verb byte, prec int) string, prec int) (verb byte, digits int) {
	s := text('e', prec-1)
	x, err := strconv.Atoi(s[strings.IndexByte(s, 'e')+1:])
	if err != nil || x < -4 || x >= prec {
		return 'e', prec - 1
	}
	return 'f', prec - 1 - x
}

// cased is s in the case of the verb.
func (d Directive) cased(s string) string {
	if d.Verb < 'a' {
		return strings.ToUpper(s)
	}
	return s
}

// doubleHex is %a: one bit before the point, or 2 if rounding carries into it.
func doubleHex(v float64, prec int, alternate bool) string {
	mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(v, 'x', -1, 64), "p")
	if prec >= 0 {
		rounded, carried, _ := strings.Cut(strconv.FormatFloat(v, 'x', prec, 64), "p")
		mantissa = rounded
		if carried != exponent {
			mantissa = "0x2" + rounded[3:]
		}
	}
	if alternate && !strings.Contains(mantissa, ".") {
		mantissa += "."
	}
	if len(exponent) == 3 && exponent[1] == '0' { // Go writes two digits at least
		exponent = exponent[:1] + exponent[2:]
	}
	return mantissa + "p" + exponent
}

// longHex is %La of x86: four bits before the point.
func longHex(v *big.Float, prec int, alternate bool) string {
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

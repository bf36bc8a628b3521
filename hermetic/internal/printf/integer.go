package printf

import (
	"strconv"
	"strings"
)

// Base is the base of d, i, u, o, x and X.
func (d Directive) Base() int {
	switch d.Verb {
	case 'o':
		return 8
	case 'x', 'X':
		return 16
	}
	return 10
}

// Int writes n as %d does.
func (d Directive) Int(n int64) string {
	if n < 0 {
		return d.Integer(true, strconv.FormatUint(-uint64(n), 10))
	}
	return d.Integer(false, strconv.FormatInt(n, 10))
}

// Uint writes n as %u, %o, %x and %X do.
func (d Directive) Uint(n uint64) string {
	return d.Integer(false, strconv.FormatUint(n, d.Base()))
}

// Integer writes a number of any size, given as its digits in Base, lower case.
// Only %d and %i write a sign before a number that is not negative.
func (d Directive) Integer(negative bool, digits string) string {
	prefix := ""
	if negative || d.Verb == 'd' || d.Verb == 'i' {
		prefix = d.sign(negative)
	}
	prec := d.Prec
	switch {
	case d.Verb == 'o' && d.Alt && digits == "0":
		prec = max(prec, 1)
	case d.Verb == 'o' && d.Alt:
		prec = max(prec, len(digits)+1)
	case d.Alt && digits != "0" && d.Base() == 16:
		prefix += "0" + string(d.Verb)
	}
	if d.Prec == 0 && digits == "0" {
		digits = ""
	}
	if d.Verb == 'X' {
		digits = strings.ToUpper(digits)
	}
	if n := prec - len(digits); n > 0 {
		digits = strings.Repeat("0", n) + digits
	}
	return d.number(prefix, digits, d.Prec < 0)
}

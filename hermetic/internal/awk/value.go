package awk

import (
	"math"
	"strconv"
	"strings"
)

type valueKind uint8

const (
	vUnset valueKind = iota
	vNumber
	vString
	vInput // a string from outside: a number, too, when it looks like one
)

// missing marks a field that is not there: it is empty, and no number.
const missing = 1

type value struct {
	kind valueKind
	n    float64
	s    string
}

func num(n float64) value  { return value{kind: vNumber, n: n} }
func str(s string) value   { return value{kind: vString, s: s} }
func input(s string) value { return value{kind: vInput, s: s} }

func boolean(b bool) value {
	if b {
		return num(1)
	}
	return num(0)
}

// number is v as a number.
func (v value) number() float64 {
	switch v.kind {
	case vNumber:
		return v.n
	case vUnset:
		return 0
	}
	return parseNumber(v.s, false)
}

// numeric reports whether v compares as a number, and which.
func (v value) numeric() (float64, bool) {
	switch v.kind {
	case vNumber:
		return v.n, true
	case vUnset:
		return 0, true
	case vInput:
		s := strings.Trim(v.s, " \t\n\r\f\v")
		if s == "" {
			return 0, false
		}
		if n, ok := special(s); ok {
			return n, true
		}
		if numberLen(s, false) == len(s) {
			return parseNumber(s, false), true
		}
	}
	return 0, false
}

func (v value) truth() bool {
	switch v.kind {
	case vNumber:
		return v.n != 0
	case vUnset:
		return false
	case vInput:
		if n, ok := v.numeric(); ok {
			return n != 0
		}
	}
	return v.s != ""
}

// text is v as a string, by the format of CONVFMT or OFMT.
func (v value) text(format string) string {
	if v.kind != vNumber {
		return v.s
	}
	return formatNumber(v.n, format)
}

func formatNumber(n float64, format string) string {
	switch {
	case n == math.Trunc(n) && !math.IsInf(n, 0):
		if math.Abs(n) < 1e16 {
			return strconv.FormatInt(int64(n), 10)
		}
		return strconv.FormatFloat(n, 'f', 0, 64)
	case math.IsNaN(n) || math.IsInf(n, 0):
		return infinite(n)
	case format == "%.6g":
		return formatG(n, 6)
	}
	out, err := sprintf(format, []value{num(n)}, 1<<16)
	if err != nil {
		return formatG(n, 6)
	}
	return out
}

func formatG(n float64, precision int) string { return strconv.FormatFloat(n, 'g', precision, 64) }

// infinite is what gawk prints of what is no finite number.
func infinite(n float64) string {
	switch {
	case math.IsInf(n, 1):
		return "+inf"
	case math.IsInf(n, -1):
		return "-inf"
	case math.Signbit(n):
		return "-nan"
	}
	return "+nan"
}

// special reads "+inf", "-nan" and the like, which need a sign.
func special(s string) (float64, bool) {
	switch strings.ToLower(s) {
	case "+inf":
		return math.Inf(1), true
	case "-inf":
		return math.Inf(-1), true
	case "+nan":
		return math.NaN(), true
	case "-nan":
		return math.Copysign(math.NaN(), -1), true
	}
	return 0, false
}

func isAlnum(c byte) bool { return isDigit(c) || c == '_' || 'a' <= lower(c) && lower(c) <= 'z' }

// numberLen is how much of s is a number at its begin. source: of a program,
// where 0x11 is one.
func numberLen(s string, source bool) int {
	i := 0
	if source && len(s) > 2 && s[0] == '0' && lower(s[1]) == 'x' && hexDigit(s[2]) >= 0 {
		for i = 2; i < len(s) && hexDigit(s[i]) >= 0; i++ {
		}
		return i
	}
	if !source && i < len(s) && (s[i] == '+' || s[i] == '-') {
		i++
	}
	digits := 0
	for i < len(s) && isDigit(s[i]) {
		i++
		digits++
	}
	if i < len(s) && s[i] == '.' {
		i++
		for i < len(s) && isDigit(s[i]) {
			i++
			digits++
		}
	}
	if digits == 0 {
		return 0
	}
	if i < len(s) && lower(s[i]) == 'e' {
		j := i + 1
		if j < len(s) && (s[j] == '+' || s[j] == '-') {
			j++
		}
		if j < len(s) && isDigit(s[j]) {
			for j < len(s) && isDigit(s[j]) {
				j++
			}
			i = j
		}
	}
	return i
}

// parseNumber is strtod on the begin of s.
func parseNumber(s string, source bool) float64 {
	s = strings.TrimLeft(s, " \t\n\r\f\v")
	if len(s) >= 4 {
		if n, ok := special(s[:4]); ok && !source && (len(s) == 4 || !isAlnum(s[4])) {
			return n
		}
	}
	n := numberLen(s, source)
	if n == 0 {
		return 0
	}
	s = s[:n]
	if n <= 9 && !strings.ContainsAny(s, ".eExX") && !(source && s[0] == '0') {
		v, _ := strconv.Atoi(s)
		return float64(v)
	}
	if source && n > 1 && s[0] == '0' && strings.Trim(s, "01234567") == "" {
		v, _ := strconv.ParseUint(s, 8, 64)
		return float64(v)
	}
	if source && n > 2 && lower(s[1]) == 'x' {
		v, _ := strconv.ParseUint(s[2:], 16, 64)
		return float64(v)
	}
	f, _ := strconv.ParseFloat(s, 64)
	return f
}

// array is an associative array.
type array struct {
	m    map[string]*cell
	made int
}

// cell is a variable, an element or a parameter. It becomes an array when it
// is used as one; a parameter that does makes the caller's variable one, too.
type cell struct {
	v      value
	seq    int // of an element: the count of those made before
	arr    *array
	origin *cell
}

func (c *cell) array() *array {
	if c.arr == nil {
		if c.origin != nil {
			c.arr = c.origin.array()
		} else {
			c.arr = &array{m: map[string]*cell{}}
		}
	}
	return c.arr
}

func (a *array) get(key string) *cell {
	c := a.m[key]
	if c == nil {
		c = &cell{seq: a.made}
		a.made++
		a.m[key] = c
	}
	return c
}

func (a *array) set(key string, v value) { a.get(key).v = v }

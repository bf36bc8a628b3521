// Package value is what programs of awk compute with: strings, numbers and what is
// both, arrays, and printf of them.
package value

import (
	"math"
	"strconv"
	"strings"
)

type valueKind uint8

const (
	VUnset valueKind = iota
	VNumber
	vString
	VInput // a string from outside: a number, too, when it looks like one
)

// Missing marks a field that is not there: it is empty, and no number.
const Missing = 1

// Value is a string, a number, or input, which is a number if it looks like one.
type Value struct {
	Kind valueKind
	N    float64
	S    string
}

// Num is a number.
func Num(n float64) Value { return Value{Kind: VNumber, N: n} }

// Str is a string.
func Str(s string) Value { return Value{Kind: vString, S: s} }

// Input is what was read.
func Input(s string) Value { return Value{Kind: VInput, S: s} }

// Boolean is 1 or 0.
func Boolean(b bool) Value {
	if b {
		return Num(1)
	}
	return Num(0)
}

// Number is v as a number.
func (v Value) Number() float64 {
	switch v.Kind {
	case VNumber:
		return v.N
	case VUnset:
		return 0
	}
	return ParseNumber(v.S, false)
}

// Numeric reports whether v compares as a number, and which.
func (v Value) Numeric() (float64, bool) {
	switch v.Kind {
	case VNumber:
		return v.N, true
	case VUnset:
		return 0, true
	case VInput:
		s := strings.Trim(v.S, " \t\n\r\f\v")
		if s == "" {
			return 0, false
		}
		if n, ok := special(s); ok {
			return n, true
		}
		if NumberLen(s, false) == len(s) {
			return ParseNumber(s, false), true
		}
	}
	return 0, false
}

// Truth reports whether v counts as true.
func (v Value) Truth() bool {
	switch v.Kind {
	case VNumber:
		return v.N != 0
	case VUnset:
		return false
	case VInput:
		if n, ok := v.Numeric(); ok {
			return n != 0
		}
	}
	return v.S != ""
}

// Text is v as a string, by the format of CONVFMT or OFMT.
func (v Value) Text(format string) string {
	if v.Kind != VNumber {
		return v.S
	}
	return formatNumber(v.N, format)
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
	out, err := Sprintf(format, []Value{Num(n)}, 1<<16)
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

func isAlnum(c byte) bool { return IsDigit(c) || c == '_' || 'a' <= Lower(c) && Lower(c) <= 'z' }

// NumberLen is how much of s is a number at its begin. source: of a program,
// where 0x11 is one.
func NumberLen(s string, source bool) int {
	i := 0
	if source && len(s) > 2 && s[0] == '0' && Lower(s[1]) == 'x' && HexDigit(s[2]) >= 0 {
		for i = 2; i < len(s) && HexDigit(s[i]) >= 0; i++ {
		}
		return i
	}
	if !source && i < len(s) && (s[i] == '+' || s[i] == '-') {
		i++
	}
	digits := 0
	for i < len(s) && IsDigit(s[i]) {
		i++
		digits++
	}
	if i < len(s) && s[i] == '.' {
		i++
		for i < len(s) && IsDigit(s[i]) {
			i++
			digits++
		}
	}
	if digits == 0 {
		return 0
	}
	if i < len(s) && Lower(s[i]) == 'e' {
		j := i + 1
		if j < len(s) && (s[j] == '+' || s[j] == '-') {
			j++
		}
		if j < len(s) && IsDigit(s[j]) {
			for j < len(s) && IsDigit(s[j]) {
				j++
			}
			i = j
		}
	}
	return i
}

// ParseNumber is strtod on the begin of s.
func ParseNumber(s string, source bool) float64 {
	s = strings.TrimLeft(s, " \t\n\r\f\v")
	if len(s) >= 4 {
		if n, ok := special(s[:4]); ok && !source && (len(s) == 4 || !isAlnum(s[4])) {
			return n
		}
	}
	n := NumberLen(s, source)
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
	if source && n > 2 && Lower(s[1]) == 'x' {
		v, _ := strconv.ParseUint(s[2:], 16, 64)
		return float64(v)
	}
	f, _ := strconv.ParseFloat(s, 64)
	return f
}

// Array is an associative array.
type Array struct {
	M    map[string]*Cell
	made int
}

// Cell is a variable, an element or a parameter. It becomes an array when it
// is used as one; a parameter that does makes the caller's variable one, too.
type Cell struct {
	V      Value
	Seq    int // of an element: the count of those made before
	Arr    *Array
	Origin *Cell
}

// Array is the array that c is, or becomes.
func (c *Cell) Array() *Array {
	if c.Arr == nil {
		if c.Origin != nil {
			c.Arr = c.Origin.Array()
		} else {
			c.Arr = &Array{M: map[string]*Cell{}}
		}
	}
	return c.Arr
}

// Get is an element, which it makes if there is none.
func (a *Array) Get(key string) *Cell {
	c := a.M[key]
	if c == nil {
		c = &Cell{Seq: a.made}
		a.made++
		a.M[key] = c
	}
	return c
}

// Set sets an element.
func (a *Array) Set(key string, v Value) { a.Get(key).V = v }

// IsDigit reports whether c is one of 0 to 9.
func IsDigit(c byte) bool { return '0' <= c && c <= '9' }

// IsLetter reports whether a name can begin with c.
func IsLetter(c byte) bool { return c == '_' || 'a' <= c|0x20 && c|0x20 <= 'z' }

// HexDigit is the value of a hexadecimal digit; negative: c is none.
func HexDigit(c byte) int { return strings.IndexByte("0123456789abcdef", Lower(c)) }

// Lower is an ASCII letter in lower case, and anything else as it is.
func Lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c | 0x20
	}
	return c
}

// IsArray reports whether c has become an array; a nil cell has not.
func (c *Cell) IsArray() bool {
	return c != nil && (c.Arr != nil || c.Origin != nil && c.Origin.IsArray())
}

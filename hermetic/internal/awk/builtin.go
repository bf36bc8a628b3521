package awk

import (
	"errors"
	"fmt"
	"math"
	"math/rand"
	"strconv"
	"strings"
	"unicode/utf8"
)

// builtin calls a function of awk's own.
func (in *interp) builtin(e *builtinExpr) (value, error) {
	switch e.name {
	case "length":
		return in.length(e)
	case "split", "patsplit":
		return in.splitCall(e)
	case "sub", "gsub":
		return in.subCall(e)
	case "gensub":
		return in.gensub(e)
	case "match":
		return in.matchCall(e)
	case "asort", "asorti":
		return in.asort(e)
	case "typeof", "isarray":
		return in.typeOf(e)
	}
	args := make([]value, len(e.args))
	for i, a := range e.args {
		v, err := in.eval(a)
		if err != nil {
			return value{}, err
		}
		args[i] = v
	}
	if v, ok, err := in.mathCall(e.name, args); ok {
		return v, err
	}
	if v, ok, err := in.textCall(e.name, args); ok {
		return v, err
	}
	return in.systemCall(e.name, args)
}

func (in *interp) length(e *builtinExpr) (value, error) {
	if len(e.args) == 0 {
		return num(float64(in.runes(in.rec.text()))), nil
	}
	if c, err := in.place(e.args[0]); err != nil {
		return value{}, err
	} else if c.isArray() {
		return num(float64(len(c.array().m))), nil
	}
	v, err := in.eval(e.args[0])
	return num(float64(in.runes(v.text(in.convfmt)))), err
}

func (in *interp) runes(s string) int {
	if in.bytes {
		return len(s)
	}
	return utf8.RuneCountInString(s)
}

func (in *interp) mathCall(name string, args []value) (v value, ok bool, err error) {
	n := func(i int) float64 { return args[i].number() }
	switch name {
	case "atan2":
		return num(math.Atan2(n(0), n(1))), true, nil
	case "cos":
		return num(math.Cos(n(0))), true, nil
	case "sin":
		return num(math.Sin(n(0))), true, nil
	case "exp":
		return num(math.Exp(n(0))), true, nil
	case "log":
		return num(in.negative(name, n(0), math.Log)), true, nil
	case "sqrt":
		return num(in.negative(name, n(0), math.Sqrt)), true, nil
	case "int":
		return num(math.Trunc(n(0))), true, nil
	case "rand":
		return num(in.random.Float64()), true, nil
	case "srand":
		in.prevSeed = in.seed
		in.seed = float64(in.c.Now().Unix())
		if len(args) > 0 {
			in.seed = n(0)
		}
		in.random = rand.New(rand.NewSource(int64(in.seed)))
		return num(in.prevSeed), true, nil
	case "strtonum":
		return num(strtonum(args[0])), true, nil
	case "and", "or", "xor", "lshift", "rshift", "compl":
		f, err := bitwise(name, args)
		return num(f), true, err
	}
	return value{}, false, nil
}

// negative calls f, and warns of an argument that it has no value for.
func (in *interp) negative(name string, n float64, f func(float64) float64) float64 {
	if n < 0 {
		_ = in.io.flush()
		in.c.Errorf("cmd. line:%d: warning: %s: received negative argument %s", in.line, name, num(n).text("%.6g"))
		return math.Copysign(math.NaN(), -1)
	}
	return f(n)
}

func strtonum(v value) float64 {
	if v.kind == vNumber {
		return v.n
	}
	s := strings.TrimLeft(v.s, " \t\n")
	neg := strings.HasPrefix(s, "-")
	s = strings.TrimPrefix(s, "-")
	n := 0.0
	switch {
	case len(s) > 1 && s[0] == '0' && lower(s[1]) == 'x':
		n = parseNumber(s, true)
	case len(s) > 1 && s[0] == '0' && !strings.ContainsAny(s, ".eE89"):
		for i := 1; i < len(s) && '0' <= s[i] && s[i] <= '7'; i++ {
			n = n*8 + float64(s[i]-'0')
		}
	default:
		n = parseNumber(s, false)
	}
	if neg {
		return -n
	}
	return n
}

func bitwise(name string, args []value) (float64, error) {
	bits := make([]uint64, len(args))
	for i, a := range args {
		n := a.number()
		if n < 0 {
			return 0, fmt.Errorf("%s: argument %d negative value %s is not allowed", name, i+1, num(n).text("%.6g"))
		}
		bits[i] = uint64(n)
	}
	r := bits[0]
	switch name {
	case "lshift":
		r <<= bits[1]
	case "rshift":
		r >>= bits[1]
	case "compl":
		r = ^r & (1<<53 - 1)
	default:
		for _, b := range bits[1:] {
			switch name {
			case "and":
				r &= b
			case "or":
				r |= b
			case "xor":
				r ^= b
			}
		}
	}
	return float64(r), nil
}

func (in *interp) textCall(name string, args []value) (v value, ok bool, err error) {
	s := func(i int) string { return args[i].text(in.convfmt) }
	switch name {
	case "index":
		at := strings.Index(s(0), s(1))
		if at < 0 {
			return num(0), true, nil
		}
		return num(float64(in.runes(s(0)[:at]) + 1)), true, nil
	case "substr":
		length := math.Inf(1)
		if len(args) > 2 {
			length = args[2].number()
		}
		return str(in.substr(s(0), args[1].number(), length)), true, nil
	case "tolower":
		return str(in.mapCase(s(0), strings.ToLower)), true, nil
	case "toupper":
		return str(in.mapCase(s(0), strings.ToUpper)), true, nil
	case "sprintf":
		t, err := sprintf(s(0), args[1:], int(min(in.c.Budget.Limits.String, maxWidth)))
		return str(t), true, err
	}
	return value{}, false, nil
}

// mapCase changes letters and leaves bytes that are not UTF-8 alone.
func (in *interp) mapCase(s string, f func(string) string) string {
	if utf8.ValidString(s) && !in.bytes {
		return f(s)
	}
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; c < utf8.RuneSelf {
			b.WriteString(f(s[i : i+1]))
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// substr is the characters from start, length of them; as in gawk 5.2 a start
// below 1 is 1.
func (in *interp) substr(s string, start, length float64) string {
	if math.IsNaN(start) || math.IsNaN(length) {
		return ""
	}
	start, length = max(math.Trunc(start), 1), math.Trunc(length)
	if length <= 0 || start > float64(len(s)) {
		return ""
	}
	if in.bytes || isASCII(s) {
		from := int(start) - 1
		return s[from:int(min(float64(len(s)), float64(from)+length))]
	}
	from, to, at := len(s), len(s), 1.0
	for i := range s {
		if at == start {
			from = i
		}
		if at == start+length {
			to = i
			break
		}
		at++
	}
	return s[min(from, to):to]
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

func (in *interp) systemCall(name string, args []value) (value, error) {
	s := func(i int) string { return args[i].text(in.convfmt) }
	switch name {
	case "close":
		n, err := in.io.closeNamed(s(0))
		return num(float64(n)), err
	case "fflush":
		return num(0), in.io.flush()
	case "system":
		if err := in.io.flush(); err != nil {
			return value{}, err
		}
		return num(float64(in.io.shell(in.ctx, s(0), nil, nil))), in.ctx.Err()
	case "systime":
		return num(float64(in.c.Now().Unix())), nil
	case "strftime":
		format := "%a %b %e %H:%M:%S %Z %Y"
		if len(args) > 0 {
			format = s(0)
		}
		at := float64(in.c.Now().Unix())
		if len(args) > 1 {
			at = args[1].number()
		}
		utc := len(args) > 2 && args[2].truth()
		return str(in.strftime(format, at, utc)), nil
	case "mktime":
		return num(in.mktime(s(0), len(args) > 1 && args[1].truth())), nil
	}
	return value{}, fmt.Errorf("function `%s' not defined", name)
}

var errArray = errors.New("argument is not an array")

// arrayArg is the array that e names.
func (in *interp) arrayArg(e expr) (*array, error) {
	switch e.(type) {
	case *nameExpr, *indexExpr:
		return in.arrayOf(e)
	}
	return nil, errArray
}

func (in *interp) typeOf(e *builtinExpr) (value, error) {
	kind := "untyped"
	c, err := in.place(e.args[0])
	if err != nil {
		return value{}, err
	}
	if c.isArray() {
		kind = "array"
	}
	if kind != "array" {
		v, err := in.eval(e.args[0])
		if err != nil {
			return value{}, err
		}
		kind = [...]string{"untyped", "number", "string", "string"}[v.kind]
		if _, ok := v.numeric(); ok && v.kind == vInput {
			kind = "strnum"
		}
		if v.kind == vInput && v.s == "" && v.n == missing {
			kind = "unassigned"
		}
	}
	if e.name == "isarray" {
		return boolean(kind == "array"), nil
	}
	return str(kind), nil
}

// number of an array's element.
func itoa(n int) string { return strconv.Itoa(n) }

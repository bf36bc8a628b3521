package awk

import (
	"errors"
	"fmt"
	"math"
	"math/rand"
	"strconv"
	"strings"
	"unicode/utf8"

	"egressd/hermetic/internal/awk/syntax"
	"egressd/hermetic/internal/awk/value"
)

// builtin calls a function of awk's own.
func (in *interp) builtin(e *syntax.BuiltinExpr) (value.Value, error) {
	switch e.Name {
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
	args := make([]value.Value, len(e.Args))
	for i, a := range e.Args {
		v, err := in.eval(a)
		if err != nil {
			return value.Value{}, err
		}
		args[i] = v
	}
	if v, ok, err := in.mathCall(e.Name, args); ok {
		return v, err
	}
	if v, ok, err := in.textCall(e.Name, args); ok {
		return v, err
	}
	return in.systemCall(e.Name, args)
}

func (in *interp) length(e *syntax.BuiltinExpr) (value.Value, error) {
	if len(e.Args) == 0 {
		return value.Num(float64(in.runes(in.rec.Text()))), nil
	}
	if c, err := in.place(e.Args[0]); err != nil {
		return value.Value{}, err
	} else if c.IsArray() {
		return value.Num(float64(len(c.Array().M))), nil
	}
	v, err := in.eval(e.Args[0])
	return value.Num(float64(in.runes(v.Text(in.convfmt)))), err
}

func (in *interp) runes(s string) int {
	if in.bytes {
		return len(s)
	}
	return utf8.RuneCountInString(s)
}

func (in *interp) mathCall(name string, args []value.Value) (v value.Value, ok bool, err error) {
	n := func(i int) float64 { return args[i].Number() }
	switch name {
	case "atan2":
		return value.Num(math.Atan2(n(0), n(1))), true, nil
	case "cos":
		return value.Num(math.Cos(n(0))), true, nil
	case "sin":
		return value.Num(math.Sin(n(0))), true, nil
	case "exp":
		return value.Num(math.Exp(n(0))), true, nil
	case "log":
		return value.Num(in.negative(name, n(0), math.Log)), true, nil
	case "sqrt":
		return value.Num(in.negative(name, n(0), math.Sqrt)), true, nil
	case "int":
		return value.Num(math.Trunc(n(0))), true, nil
	case "rand":
		return value.Num(in.random.Float64()), true, nil
	case "srand":
		in.prevSeed = in.seed
		in.seed = float64(in.c.Now().Unix())
		if len(args) > 0 {
			in.seed = n(0)
		}
		in.random = rand.New(rand.NewSource(int64(in.seed)))
		return value.Num(in.prevSeed), true, nil
	case "strtonum":
		return value.Num(strtonum(args[0])), true, nil
	case "and", "or", "xor", "lshift", "rshift", "compl":
		f, err := bitwise(name, args)
		return value.Num(f), true, err
	}
	return value.Value{}, false, nil
}

// negative calls f, and warns of an argument that it has no value for.
func (in *interp) negative(name string, n float64, f func(float64) float64) float64 {
	if n < 0 {
		_ = in.io.flush()
		in.c.Errorf("cmd. line:%d: warning: %s: received negative argument %s", in.line, name, value.Num(n).Text("%.6g"))
		return math.Copysign(math.NaN(), -1)
	}
	return f(n)
}

func strtonum(v value.Value) float64 {
	if v.Kind == value.VNumber {
		return v.N
	}
	s := strings.TrimLeft(v.S, " \t\n")
	neg := strings.HasPrefix(s, "-")
	s = strings.TrimPrefix(s, "-")
	n := 0.0
	switch {
	case len(s) > 1 && s[0] == '0' && value.Lower(s[1]) == 'x':
		n = value.ParseNumber(s, true)
	case len(s) > 1 && s[0] == '0' && !strings.ContainsAny(s, ".eE89"):
		for i := 1; i < len(s) && '0' <= s[i] && s[i] <= '7'; i++ {
			n = n*8 + float64(s[i]-'0')
		}
	default:
		n = value.ParseNumber(s, false)
	}
	if neg {
		return -n
	}
	return n
}

func bitwise(name string, args []value.Value) (float64, error) {
	bits := make([]uint64, len(args))
	for i, a := range args {
		n := a.Number()
		if n < 0 {
			return 0, fmt.Errorf("%s: argument %d negative value %s is not allowed", name, i+1, value.Num(n).Text("%.6g"))
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

func (in *interp) textCall(name string, args []value.Value) (v value.Value, ok bool, err error) {
	s := func(i int) string { return args[i].Text(in.convfmt) }
	switch name {
	case "index":
		at := strings.Index(s(0), s(1))
		if at < 0 {
			return value.Num(0), true, nil
		}
		return value.Num(float64(in.runes(s(0)[:at]) + 1)), true, nil
	case "substr":
		length := math.Inf(1)
		if len(args) > 2 {
			length = args[2].Number()
		}
		return value.Str(in.substr(s(0), args[1].Number(), length)), true, nil
	case "tolower":
		return value.Str(in.mapCase(s(0), strings.ToLower)), true, nil
	case "toupper":
		return value.Str(in.mapCase(s(0), strings.ToUpper)), true, nil
	case "sprintf":
		t, err := value.Sprintf(s(0), args[1:], int(min(in.c.Budget.Limits.String, value.MaxWidth)))
		return value.Str(t), true, err
	}
	return value.Value{}, false, nil
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

func (in *interp) systemCall(name string, args []value.Value) (value.Value, error) {
	s := func(i int) string { return args[i].Text(in.convfmt) }
	switch name {
	case "close":
		n, err := in.io.closeNamed(s(0))
		return value.Num(float64(n)), err
	case "fflush":
		return value.Num(0), in.io.flush()
	case "system":
		if err := in.io.flush(); err != nil {
			return value.Value{}, err
		}
		return value.Num(float64(in.io.shell(in.ctx, s(0), nil, nil))), in.ctx.Err()
	case "systime":
		return value.Num(float64(in.c.Now().Unix())), nil
	case "strftime":
		format := "%a %b %e %H:%M:%S %Z %Y"
		if len(args) > 0 {
			format = s(0)
		}
		at := float64(in.c.Now().Unix())
		if len(args) > 1 {
			at = args[1].Number()
		}
		utc := len(args) > 2 && args[2].Truth()
		return in.strftime(format, at, utc)
	case "mktime":
		return value.Num(in.mktime(s(0), len(args) > 1 && args[1].Truth())), nil
	}
	return value.Value{}, fmt.Errorf("function `%s' not defined", name)
}

var errArray = errors.New("argument is not an array")

// arrayArg is the array that e names.
func (in *interp) arrayArg(e syntax.Expr) (*value.Array, error) {
	switch e.(type) {
	case *syntax.NameExpr, *syntax.IndexExpr:
		return in.arrayOf(e)
	}
	return nil, errArray
}

func (in *interp) typeOf(e *syntax.BuiltinExpr) (value.Value, error) {
	kind := "untyped"
	c, err := in.place(e.Args[0])
	if err != nil {
		return value.Value{}, err
	}
	if c.IsArray() {
		kind = "array"
	}
	if kind != "array" {
		v, err := in.eval(e.Args[0])
		if err != nil {
			return value.Value{}, err
		}
		kind = [...]string{"untyped", "number", "string", "string"}[v.Kind]
		if _, ok := v.Numeric(); ok && v.Kind == value.VInput {
			kind = "strnum"
		}
		if v.Kind == value.VInput && v.S == "" && v.N == value.Missing {
			kind = "unassigned"
		}
	}
	if e.Name == "isarray" {
		return value.Boolean(kind == "array"), nil
	}
	return value.Str(kind), nil
}

// number of an array's element.
func itoa(n int) string { return strconv.Itoa(n) }

package arith

import (
	"math"
	"strconv"
	"strings"
	"testing"
)

type vars map[string]string

func (v vars) Get(name, index string, indexed bool) (string, error) {
	if indexed {
		return v[name+"["+index+"]"], nil
	}
	return v[name], nil
}

func (v vars) Set(name, index string, indexed bool, n int64) error {
	if indexed {
		name += "[" + index + "]"
	}
	v[name] = strconv.FormatInt(n, 10)
	return nil
}

func TestEval(t *testing.T) {
	for _, tt := range []struct {
		expr string
		want int64
	}{
		{"", 0},
		{" 1 + 2 * 3 ", 7},
		{"(1+2)*3", 9},
		{"2**3**2", 512},
		{"-2**2", 4}, // the sign binds tighter, as in bash
		{"7/-2", -3},
		{"-7%3", -1},
		{"1<<62<<1", math.MinInt64},
		{"9223372036854775807+1", math.MinInt64},
		{"-9223372036854775808/-1", math.MinInt64},
		{"5&3|8^1", 9},
		{"!0+~5", -5},
		{"1?2:3?4:5", 2},
		{"0?2:0?4:5", 5},
		{"0x1F+010+2#101+36#z+64#_", 31 + 8 + 5 + 35 + 63},
		{"x=5,x+=2,x", 7},
		{"y++ + ++y", 2},
		{"y--", 2},
		{"a[1+1]=4", 4},
		{"a[1+1]", 4},
		{"e*2", 6},
		{"0&&(z=1)", 0},
		{"1||(z=1)", 1},
		{"z", 0},
		{"1==1!=0", 1},
		{"3>2>1", 0},
		{"- - 3", 3},
		{"--3", 3}, // two signs
		{"1,2", 2},
	} {
		v["e"] = "1+2"
		if got, err := Eval(tt.expr, v); err != nil || got != tt.want {
			t.Errorf("%q: %d, %v, want %d", tt.expr, got, err, tt.want)
		}
	}
}

var v = vars{}

func TestMistakes(t *testing.T) {
	for expr, want := range map[string]string{
		"1/0":                             `1/0: division by 0 (error token is "0")`,
		"08":                              `08: value too great for base (error token is "08")`,
		"1 +":                             `1 +: syntax error: operand expected (error token is "+")`,
		"1 1":                             `1 1: syntax error in expression (error token is "1")`,
		"(1":                              "(1: missing `)' (error token is \"1\")",
		"1=2":                             `1=2: attempted assignment to non-variable (error token is "=2")`,
		"99#1":                            `99#1: invalid arithmetic base (error token is "99#1")`,
		"self":                            "expression recursion level exceeded",
		"1?2":                             "`:' expected for conditional expression",
		"2**-1":                           "exponent less than 0",
		"a[1":                             "bad array subscript",
		"1 $":                             "syntax error: operand expected",
		strings.Repeat("(", 100000):       "expression recursion level exceeded",
		strings.Repeat("-", 100000) + "1": "",
	} {
		_, err := Eval(expr, vars{"self": "self"})
		if want == "" {
			continue // no crash is all
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: %.200v, want %s", expr, err, want)
		}
	}
}

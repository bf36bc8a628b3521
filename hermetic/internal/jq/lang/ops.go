package lang

import (
	"math"
	"slices"
	"strings"

	"github.com/itchyny/gojq"

	"egressd/hermetic/internal/jq/value"
)

// described is a value in an error: its type and, shortened, itself.
func described(v any) string {
	s := value.Tojson(v)
	if len(s) > 14 {
		s = strings.ToValidUTF8(s[:11], "") + "..."
	}
	return value.TypeName(v) + " (" + s + ")"
}

// operate is the arithmetic and the comparisons.
func operate(op gojq.Operator, l, r any) (any, error) {
	switch op {
	case gojq.OpEq:
		return value.Equal(l, r), nil
	case gojq.OpNe:
		return !value.Equal(l, r), nil
	case gojq.OpLt:
		return value.Compare(l, r) < 0, nil
	case gojq.OpLe:
		return value.Compare(l, r) <= 0, nil
	case gojq.OpGt:
		return value.Compare(l, r) > 0, nil
	case gojq.OpGe:
		return value.Compare(l, r) >= 0, nil
	}
	x, ok1 := value.Number(l)
	y, ok2 := value.Number(r)
	if ok1 && ok2 {
		return calculate(op, x, y, l, r)
	}
	switch op {
	case gojq.OpAdd:
		return add(l, r)
	case gojq.OpSub:
		return subtract(l, r)
	case gojq.OpMul:
		return multiply(l, r)
	case gojq.OpDiv:
		return divide(l, r)
	}
	return nil, Failf("%s and %s cannot be divided (remainder)", described(l), described(r))
}

func calculate(op gojq.Operator, x, y float64, l, r any) (any, error) {
	switch op {
	case gojq.OpAdd:
		return x + y, nil
	case gojq.OpSub:
		return x - y, nil
	case gojq.OpMul:
		return x * y, nil
	case gojq.OpDiv:
		if y == 0 {
			return nil, Failf("%s and %s cannot be divided because the divisor is zero", described(l), described(r))
		}
		return x / y, nil
	}
	if math.IsNaN(x) || math.IsNaN(y) {
		return math.NaN(), nil
	}
	a, b := toInt(x), toInt(y)
	if b == 0 {
		return nil, Failf("%s and %s cannot be divided (remainder) because the divisor is zero", described(l), described(r))
	}
	if b == math.MinInt64 {
		return float64(a), nil
	}
	if b < 0 {
		b = -b
	}
	return float64(a % b), nil
}

// toInt cuts the fraction off and stays in range.
func toInt(f float64) int64 {
	switch {
	case f >= math.MaxInt64:
		return math.MaxInt64
	case f <= math.MinInt64:
		return math.MinInt64
	}
	return int64(f)
}

func add(l, r any) (any, error) {
	if l == nil {
		return r, nil
	}
	if r == nil {
		return l, nil
	}
	switch l := l.(type) {
	case string:
		if r, ok := r.(string); ok {
			return l + r, nil
		}
	case []any:
		if r, ok := r.([]any); ok {
			if len(r) == 0 {
				return l, nil
			}
			return value.Appended(l, r...), nil
		}
	case *value.Object:
		if r, ok := r.(*value.Object); ok {
			out := l
			for _, k := range r.Keys() {
				v, _ := r.Get(k)
				out = out.Set(k, v)
			}
			return out, nil
		}
	}
	return nil, Failf("%s and %s cannot be added", described(l), described(r))
}

func subtract(l, r any) (any, error) {
	a, ok1 := l.([]any)
	b, ok2 := r.([]any)
	if !ok1 || !ok2 {
		return nil, Failf("%s and %s cannot be subtracted", described(l), described(r))
	}
	out := []any{}
	for _, v := range a {
		if !slices.ContainsFunc(b, func(w any) bool { return value.Equal(v, w) }) {
			out = append(out, v)
		}
	}
	return out, nil
}

func multiply(l, r any) (any, error) {
	if _, ok := value.Number(l); ok {
		l, r = r, l
	}
	if s, ok := l.(string); ok {
		if n, ok := value.Number(r); ok {
			if n <= 0 || math.IsNaN(n) {
				return nil, nil
			}
			if n*float64(len(s)) > 1<<26 {
				return nil, Failf("Repeat string result too long")
			}
			return strings.Repeat(s, max(1, int(math.Ceil(n)))), nil
		}
	}
	a, ok1 := l.(*value.Object)
	b, ok2 := r.(*value.Object)
	if ok1 && ok2 {
		return merge(a, b), nil
	}
	return nil, Failf("%s and %s cannot be multiplied", described(l), described(r))
}

// merge is a with b in it, objects in both merged in turn.
func merge(a, b *value.Object) *value.Object {
	for _, k := range b.Keys() {
		v, _ := b.Get(k)
		if inner, ok := v.(*value.Object); ok {
			old, _ := a.Get(k)
			if o, ok := old.(*value.Object); ok {
				v = merge(o, inner)
			}
		}
		a = a.Set(k, v)
	}
	return a
}

func divide(l, r any) (any, error) {
	a, ok1 := l.(string)
	b, ok2 := r.(string)
	if ok1 && ok2 {
		return split(a, b), nil
	}
	return nil, Failf("%s and %s cannot be divided", described(l), described(r))
}

func split(s, sep string) []any {
	out := []any{}
	if s == "" {
		return out
	}
	for _, part := range strings.Split(s, sep) {
		out = append(out, part)
	}
	return out
}

// indicesOf is where part begins in a.
func indicesOf(a, part []any) any {
	out := []any{}
	if len(part) == 0 {
		return nil
	}
	for i := 0; i+len(part) <= len(a); i++ {
		if slices.EqualFunc(a[i:i+len(part)], part, value.Equal) {
			out = append(out, float64(i))
		}
	}
	return out
}

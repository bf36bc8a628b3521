package lang

import (
	"math"
	"math/big"
	"strings"

	"github.com/itchyny/gojq"

	"egressd/hermetic/internal/jq/value"
)

// delegate runs a function that gojq has and that is of values alone: regular
// expressions, dates, mathematics.
func (m *Machine) delegate(f *gojq.Func, s *Scope, in Item, out Emit) error {
	given := make([]any, len(f.Args))
	return m.cartesian(f.Args, given, s, in, func() error {
		list, err := m.gojqCall(f.Name, in.V, given)
		if err != nil {
			return err
		}
		for _, v := range list {
			if err := out(in.Computed(v)); err != nil {
				return err
			}
		}
		return nil
	})
}

// gojqCall is all outputs of one of gojq's functions.
func (m *Machine) gojqCall(name string, v any, args []any) ([]any, error) {
	code, err := m.compiled(name, len(args))
	if err != nil {
		return nil, err
	}
	given := make([]any, len(args))
	for i, a := range args {
		given[i] = toGojq(a)
	}
	var all []any
	for it := code.RunWithContext(m.Ctx, toGojq(v), given...); ; {
		x, ok := it.Next()
		if !ok {
			return all, nil
		}
		if err, ok := x.(error); ok {
			return nil, fromGojqError(err)
		}
		all = append(all, fromGojq(x))
		if err := m.step(); err != nil {
			return nil, err
		}
	}
}

func matchable(v any, args []any) error {
	if _, ok := v.(string); !ok {
		return Failf("%s cannot be matched, as it is not a string", described(v))
	}
	switch args[0].(type) {
	case string, []any:
	default:
		return Failf("%s cannot be matched, as it is not a string", described(args[0]))
	}
	switch args[1].(type) {
	case string, nil:
		return nil
	}
	return Failf("%s is not a string", described(args[1]))
}

func (m *Machine) compiled(function string, args int) (*gojq.Code, error) {
	name := funcName(function, args)
	if code := m.Gojq[name]; code != nil {
		return code, nil
	}
	vars, text := []string{}, function
	for i := range args {
		vars = append(vars, "$a"+string(rune('0'+i)))
	}
	if len(vars) > 0 {
		text += "(" + strings.Join(vars, ";") + ")"
	}
	q, err := gojq.Parse(text)
	if err != nil {
		return nil, Failf("%s is not defined", name)
	}
	code, err := gojq.Compile(q, gojq.WithVariables(vars))
	if err != nil {
		return nil, Failf("%s is not defined", name)
	}
	m.Gojq[name] = code
	return code, nil
}

func toGojq(v any) any {
	switch v := v.(type) {
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<53 && (v != 0 || !math.Signbit(v)) {
			return int(v)
		}
		return v
	case value.Literal:
		return v.F
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = toGojq(e)
		}
		return out
	case *value.Object:
		out := make(map[string]any, v.Len())
		for _, k := range v.Keys() {
			e, _ := v.Get(k)
			out[k] = toGojq(e)
		}
		return out
	}
	return v
}

func fromGojq(v any) any {
	switch v := v.(type) {
	case int:
		return float64(v)
	case *big.Int:
		f, _ := new(big.Float).SetInt(v).Float64()
		return f
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = fromGojq(e)
		}
		return out
	case map[string]any:
		o := value.NewObject(len(v))
		for _, k := range []string{"offset", "length", "string", "captures", "name"} {
			if e, ok := v[k]; ok {
				o.Put(k, fromGojq(e))
			}
		}
		for k, e := range v {
			if _, ok := o.Get(k); !ok {
				o.Put(k, fromGojq(e))
			}
		}
		return o
	}
	return v
}

func fromGojqError(err error) error {
	if e, ok := err.(gojq.ValueError); ok {
		return &Failure{fromGojq(e.Value())}
	}
	return Failf("%s", err)
}

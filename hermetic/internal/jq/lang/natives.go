package lang

import (
	"errors"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/itchyny/gojq"

	"egressd/hermetic/internal/jq/value"
)

// Filter is a function of the language that is written in Go.
type Filter = func(m *Machine, s *Scope, args []*gojq.Query, in Item, out Emit) error

// filters are the functions that take filters or mind where values lie.
func filters() map[string]Filter {
	return map[string]Filter{
		"empty/0": func(*Machine, *Scope, []*gojq.Query, Item, Emit) error { return nil },
		"error/0": func(_ *Machine, _ *Scope, _ []*gojq.Query, in Item, _ Emit) error { return &Failure{in.V} },
		"not/0": func(_ *Machine, _ *Scope, _ []*gojq.Query, in Item, out Emit) error {
			return out(in.Computed(!value.Truthy(in.V)))
		},
		"select/1": func(m *Machine, s *Scope, args []*gojq.Query, in Item, out Emit) error {
			return m.values(args[0], s, in, func(v any) error {
				if value.Truthy(v) {
					return out(in)
				}
				return nil
			})
		},
		"recurse/0": func(m *Machine, _ *Scope, _ []*gojq.Query, in Item, out Emit) error { return m.recurse(in, out) },
		"path/1": func(m *Machine, s *Scope, args []*gojq.Query, in Item, out Emit) error {
			return m.paths(args[0], s, in, func(keys []any, _ any) error { return out(in.Computed(keys)) })
		},
		"getpath/1": getpath,
		"range/3":   ranged,
		"first/1": func(m *Machine, s *Scope, args []*gojq.Query, in Item, out Emit) error {
			return m.limit(1, args[0], s, in, out)
		},
		"last/1":    last,
		"limit/2":   limit,
		"skip/2":    skip,
		"sub/3":     sub,
		"match/2":   matches,
		"splits/2":  splits,
		"isempty/1": isempty,
		"input/0":   input,
		"debug/0":   debug,
		"stderr/0":  stderr,
		"halt/0":    func(*Machine, *Scope, []*gojq.Query, Item, Emit) error { return &Halted{} },
		"env/0": func(m *Machine, _ *Scope, _ []*gojq.Query, in Item, out Emit) error {
			return out(in.Computed(m.Host.Env))
		},
		"builtins/0": func(m *Machine, _ *Scope, _ []*gojq.Query, in Item, out Emit) error {
			return out(in.Computed(m.builtins()))
		},
		"now/0": func(m *Machine, _ *Scope, _ []*gojq.Query, in Item, out Emit) error {
			return out(in.Computed(m.Host.Now()))
		},
		"input_filename/0": func(m *Machine, _ *Scope, _ []*gojq.Query, in Item, out Emit) error {
			return out(in.Computed(m.Host.Filename()))
		},
		"input_line_number/0": func(m *Machine, _ *Scope, _ []*gojq.Query, in Item, out Emit) error {
			return out(in.Computed(float64(m.Host.Line())))
		},
	}
}

func getpath(m *Machine, s *Scope, args []*gojq.Query, in Item, out Emit) error {
	return m.values(args[0], s, in, func(p any) error {
		keys, ok := p.([]any)
		if !ok {
			return Failf("Path must be specified as an array")
		}
		v, err := getPath(in.V, keys)
		if err != nil {
			return err
		}
		if in.path == noPath {
			return Failf("Invalid path expression near attempt to access element %s of %s", value.Tojson(p), value.Tojson(in.V))
		}
		x := Item{v, in.path}
		if x.path != nil {
			for _, k := range keys {
				x.path = &path{x.path, k}
			}
		}
		return out(x)
	})
}

func ranged(m *Machine, s *Scope, args []*gojq.Query, in Item, out Emit) error {
	return m.values(args[0], s, in, func(a any) error {
		return m.values(args[1], s, in, func(b any) error {
			return m.values(args[2], s, in, func(c any) error {
				from, ok1 := value.Number(a)
				to, ok2 := value.Number(b)
				by, ok3 := value.Number(c)
				if !ok1 || !ok2 || !ok3 {
					return Failf("Range bounds must be numeric")
				}
				for x := from; by > 0 && x < to || by < 0 && x > to || by == 0 && from < to; x += by {
					if err := m.step(); err != nil {
						return err
					}
					if err := out(in.Computed(x)); err != nil {
						return err
					}
				}
				return nil
			})
		})
	})
}

// limit passes the first n outputs of q on.
func (m *Machine) limit(n int, q *gojq.Query, s *Scope, in Item, out Emit) error {
	if n <= 0 {
		return nil
	}
	depth, enough := m.Depth, new(int)
	err := m.Eval(q, s, in, func(x Item) error {
		n--
		if err := out(x); err != nil || n > 0 {
			return err
		}
		return breaking{enough}
	})
	if b, ok := err.(breaking); ok && b.label == enough {
		m.Depth = depth
		return nil
	}
	return err
}

func limit(m *Machine, s *Scope, args []*gojq.Query, in Item, out Emit) error {
	return m.values(args[0], s, in, func(v any) error {
		n, ok := value.Number(v)
		if !ok {
			return Failf("Invalid arguments to limit")
		}
		if n < 0 {
			return m.Eval(args[1], s, in, out)
		}
		return m.limit(int(min(n, math.MaxInt32)), args[1], s, in, out)
	})
}

func skip(m *Machine, s *Scope, args []*gojq.Query, in Item, out Emit) error {
	return m.values(args[0], s, in, func(v any) error {
		n, _ := value.Number(v)
		if n < 0 {
			return Failf("Invalid arguments to skip: negative count")
		}
		return m.Eval(args[1], s, in, func(x Item) error {
			if n--; n >= 0 {
				return nil
			}
			return out(x)
		})
	})
}

func last(m *Machine, s *Scope, args []*gojq.Query, in Item, out Emit) error {
	x, ok, err := m.one(args[0], s, in)
	if !ok || err != nil {
		return err
	}
	return out(x)
}

func isempty(m *Machine, s *Scope, args []*gojq.Query, in Item, out Emit) error {
	empty := true
	err := m.limit(1, args[0], s, Item{V: in.V}, func(Item) error {
		empty = false
		return nil
	})
	if err != nil {
		return err
	}
	return out(in.Computed(empty))
}

func input(m *Machine, _ *Scope, _ []*gojq.Query, in Item, out Emit) error {
	v, err := m.Host.Input()
	if errors.Is(err, io.EOF) {
		return Failf("No more inputs")
	}
	if err != nil {
		return err
	}
	return out(in.Computed(v))
}

func debug(m *Machine, _ *Scope, _ []*gojq.Query, in Item, out Emit) error {
	m.Host.Message(value.Tojson([]any{"DEBUG:", in.V}) + "\n")
	return out(in)
}

func stderr(m *Machine, _ *Scope, _ []*gojq.Query, in Item, out Emit) error {
	m.Host.Message(value.Tojson(in.V))
	return out(in)
}

// Halted ends the program at once. With a value it is an error's.
type Halted struct {
	Status int
	Value  any
	Loud   bool
}

func (*Halted) Error() string { return "halted" }

func (m *Machine) builtins() any {
	out := []any{}
	for name := range m.Natives {
		if name[0] != '_' {
			out = append(out, name)
		}
	}
	for s := m.Prelude; s != nil; s = s.Up {
		out = append(out, s.Name)
	}
	slices.SortFunc(out, value.Compare)
	return out
}

// simple makes a filter of a function of values; the last argument's outputs
// change slowest.
func simple(f func(m *Machine, v any, args []any) (any, error)) Filter {
	return func(m *Machine, s *Scope, args []*gojq.Query, in Item, out Emit) error {
		given := make([]any, len(args))
		return m.cartesian(args, given, s, in, func() error {
			v, err := f(m, in.V, slices.Clone(given))
			if err != nil {
				return err
			}
			return out(in.Computed(v))
		})
	}
}

func (m *Machine) cartesian(args []*gojq.Query, given []any, s *Scope, in Item, then func() error) error {
	if len(args) == 0 {
		return then()
	}
	i := len(args) - 1
	return m.values(args[i], s, in, func(v any) error {
		given[i] = v
		return m.cartesian(args[:i], given, s, in, then)
	})
}

// Load gives m all that jq has built in.
func (m *Machine) Load() error {
	m.Natives = map[string]*Function{}
	for name, f := range filters() {
		m.Natives[name] = &Function{Native: f}
	}
	for name, f := range functions() {
		m.Natives[name] = &Function{Native: simple(f)}
	}
	q, err := gojq.Parse(strings.TrimSpace(prelude) + " .")
	if err != nil {
		return err
	}
	for _, d := range q.FuncDefs {
		m.Prelude = define(m.Prelude, d)
	}
	return nil
}

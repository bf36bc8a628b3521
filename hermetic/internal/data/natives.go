package data

import (
	"errors"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/itchyny/gojq"
)

type filter = func(m *machine, s *scope, args []*gojq.Query, in item, out emit) error

// filters are the functions that take filters or mind where values lie.
func filters() map[string]filter {
	return map[string]filter{
		"empty/0": func(*machine, *scope, []*gojq.Query, item, emit) error { return nil },
		"error/0": func(_ *machine, _ *scope, _ []*gojq.Query, in item, _ emit) error { return &failure{in.v} },
		"not/0": func(_ *machine, _ *scope, _ []*gojq.Query, in item, out emit) error {
			return out(in.computed(!truthy(in.v)))
		},
		"select/1": func(m *machine, s *scope, args []*gojq.Query, in item, out emit) error {
			return m.values(args[0], s, in, func(v any) error {
				if truthy(v) {
					return out(in)
				}
				return nil
			})
		},
		"recurse/0": func(m *machine, _ *scope, _ []*gojq.Query, in item, out emit) error { return m.recurse(in, out) },
		"path/1": func(m *machine, s *scope, args []*gojq.Query, in item, out emit) error {
			return m.paths(args[0], s, in, func(keys []any, _ any) error { return out(in.computed(keys)) })
		},
		"getpath/1": getpath,
		"range/3":   ranged,
		"first/1": func(m *machine, s *scope, args []*gojq.Query, in item, out emit) error {
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
		"halt/0":    func(*machine, *scope, []*gojq.Query, item, emit) error { return &halted{} },
		"env/0": func(m *machine, _ *scope, _ []*gojq.Query, in item, out emit) error {
			return out(in.computed(m.host.env))
		},
		"builtins/0": func(m *machine, _ *scope, _ []*gojq.Query, in item, out emit) error {
			return out(in.computed(m.builtins()))
		},
		"now/0": func(m *machine, _ *scope, _ []*gojq.Query, in item, out emit) error {
			return out(in.computed(m.host.now()))
		},
		"input_filename/0": func(m *machine, _ *scope, _ []*gojq.Query, in item, out emit) error {
			return out(in.computed(m.host.filename()))
		},
		"input_line_number/0": func(m *machine, _ *scope, _ []*gojq.Query, in item, out emit) error {
			return out(in.computed(float64(m.host.line())))
		},
	}
}

func getpath(m *machine, s *scope, args []*gojq.Query, in item, out emit) error {
	return m.values(args[0], s, in, func(p any) error {
		keys, ok := p.([]any)
		if !ok {
			return failf("Path must be specified as an array")
		}
		v, err := getPath(in.v, keys)
		if err != nil {
			return err
		}
		if in.path == noPath {
			return failf("Invalid path expression near attempt to access element %s of %s", tojson(p), tojson(in.v))
		}
		x := item{v, in.path}
		if x.path != nil {
			for _, k := range keys {
				x.path = &path{x.path, k}
			}
		}
		return out(x)
	})
}

func ranged(m *machine, s *scope, args []*gojq.Query, in item, out emit) error {
	return m.values(args[0], s, in, func(a any) error {
		return m.values(args[1], s, in, func(b any) error {
			return m.values(args[2], s, in, func(c any) error {
				from, ok1 := number(a)
				to, ok2 := number(b)
				by, ok3 := number(c)
				if !ok1 || !ok2 || !ok3 {
					return failf("Range bounds must be numeric")
				}
				for x := from; by > 0 && x < to || by < 0 && x > to || by == 0 && from < to; x += by {
					if err := m.step(); err != nil {
						return err
					}
					if err := out(in.computed(x)); err != nil {
						return err
					}
				}
				return nil
			})
		})
	})
}

// limit passes the first n outputs of q on.
func (m *machine) limit(n int, q *gojq.Query, s *scope, in item, out emit) error {
	if n <= 0 {
		return nil
	}
	depth, enough := m.depth, new(int)
	err := m.eval(q, s, in, func(x item) error {
		n--
		if err := out(x); err != nil || n > 0 {
			return err
		}
		return breaking{enough}
	})
	if b, ok := err.(breaking); ok && b.label == enough {
		m.depth = depth
		return nil
	}
	return err
}

func limit(m *machine, s *scope, args []*gojq.Query, in item, out emit) error {
	return m.values(args[0], s, in, func(v any) error {
		n, ok := number(v)
		if !ok {
			return failf("Invalid arguments to limit")
		}
		if n < 0 {
			return m.eval(args[1], s, in, out)
		}
		return m.limit(int(min(n, math.MaxInt32)), args[1], s, in, out)
	})
}

func skip(m *machine, s *scope, args []*gojq.Query, in item, out emit) error {
	return m.values(args[0], s, in, func(v any) error {
		n, _ := number(v)
		if n < 0 {
			return failf("Invalid arguments to skip: negative count")
		}
		return m.eval(args[1], s, in, func(x item) error {
			if n--; n >= 0 {
				return nil
			}
			return out(x)
		})
	})
}

func last(m *machine, s *scope, args []*gojq.Query, in item, out emit) error {
	x, ok, err := m.one(args[0], s, in)
	if !ok || err != nil {
		return err
	}
	return out(x)
}

func isempty(m *machine, s *scope, args []*gojq.Query, in item, out emit) error {
	empty := true
	err := m.limit(1, args[0], s, item{v: in.v}, func(item) error {
		empty = false
		return nil
	})
	if err != nil {
		return err
	}
	return out(in.computed(empty))
}

func input(m *machine, _ *scope, _ []*gojq.Query, in item, out emit) error {
	v, err := m.host.input()
	if errors.Is(err, io.EOF) {
		return failf("No more inputs")
	}
	if err != nil {
		return err
	}
	return out(in.computed(v))
}

func debug(m *machine, _ *scope, _ []*gojq.Query, in item, out emit) error {
	m.host.message(tojson([]any{"DEBUG:", in.v}) + "\n")
	return out(in)
}

func stderr(m *machine, _ *scope, _ []*gojq.Query, in item, out emit) error {
	m.host.message(tojson(in.v))
	return out(in)
}

// halted ends the program at once. With a value it is an error's.
type halted struct {
	status int
	value  any
	loud   bool
}

func (*halted) Error() string { return "halted" }

func (m *machine) builtins() any {
	out := []any{}
	for name := range m.natives {
		if name[0] != '_' {
			out = append(out, name)
		}
	}
	for s := m.prelude; s != nil; s = s.up {
		out = append(out, s.name)
	}
	slices.SortFunc(out, compare)
	return out
}

// simple makes a filter of a function of values; the last argument's outputs
// change slowest.
func simple(f func(m *machine, v any, args []any) (any, error)) filter {
	return func(m *machine, s *scope, args []*gojq.Query, in item, out emit) error {
		given := make([]any, len(args))
		return m.cartesian(args, given, s, in, func() error {
			v, err := f(m, in.v, slices.Clone(given))
			if err != nil {
				return err
			}
			return out(in.computed(v))
		})
	}
}

func (m *machine) cartesian(args []*gojq.Query, given []any, s *scope, in item, then func() error) error {
	if len(args) == 0 {
		return then()
	}
	i := len(args) - 1
	return m.values(args[i], s, in, func(v any) error {
		given[i] = v
		return m.cartesian(args[:i], given, s, in, then)
	})
}

// load gives m all that jq has built in.
func (m *machine) load() error {
	m.natives = map[string]*function{}
	for name, f := range filters() {
		m.natives[name] = &function{native: f}
	}
	for name, f := range functions() {
		m.natives[name] = &function{native: simple(f)}
	}
	q, err := gojq.Parse(strings.TrimSpace(prelude) + " .")
	if err != nil {
		return err
	}
	for _, d := range q.FuncDefs {
		m.prelude = define(m.prelude, d)
	}
	return nil
}

package lang

import (
	"strings"

	"github.com/itchyny/gojq"

	"egressd/hermetic/internal/jq/value"
)

// bind is "left as patterns | right".
func (m *Machine) bind(q *gojq.Query, s *Scope, in Item, out Emit) error {
	return m.values(q.Left, s, in, func(v any) error {
		return m.bound(q.Patterns, v, s, in, func(s *Scope) error { return m.Eval(q.Right, s, in, out) })
	})
}

// bound takes v apart by the first pattern that works with what follows.
func (m *Machine) bound(patterns []*gojq.Pattern, v any, s *Scope, in Item, then func(*Scope) error) error {
	if len(patterns) == 1 {
		return m.takeApart(patterns[0], v, s, in, then)
	}
	for _, p := range patterns {
		for _, name := range patternNames(p, nil) {
			s = &Scope{Up: s, Name: name}
		}
	}
	for i, p := range patterns {
		err := m.takeApart(p, v, s, in, then)
		if _, ok := err.(*Failure); !ok || i == len(patterns)-1 {
			return err
		}
	}
	return nil
}

func patternNames(p *gojq.Pattern, names []string) []string {
	if p == nil {
		return names
	}
	if p.Name != "" {
		names = append(names, p.Name)
	}
	for _, e := range p.Array {
		names = patternNames(e, names)
	}
	for _, e := range p.Object {
		if strings.HasPrefix(e.Key, "$") {
			names = append(names, e.Key)
		}
		names = patternNames(e.Val, names)
	}
	return names
}

func (m *Machine) takeApart(p *gojq.Pattern, v any, s *Scope, in Item, then func(*Scope) error) error {
	switch {
	case p.Name != "":
		return then(&Scope{Up: s, Name: p.Name, Value: v})
	case p.Array != nil:
		return m.takeElements(p.Array, 0, v, s, in, then)
	}
	return m.takeEntries(p.Object, v, s, in, then)
}

func (m *Machine) takeElements(left []*gojq.Pattern, i int, v any, s *Scope, in Item, then func(*Scope) error) error {
	if i == len(left) {
		return then(s)
	}
	e, err := indexValue(v, float64(i))
	if err != nil {
		return err
	}
	return m.takeApart(left[i], e, s, in, func(s *Scope) error { return m.takeElements(left, i+1, v, s, in, then) })
}

func (m *Machine) takeEntries(left []*gojq.PatternObject, v any, s *Scope, in Item, then func(*Scope) error) error {
	if len(left) == 0 {
		return then(s)
	}
	e := left[0]
	with := func(key any) error {
		if _, ok := key.(string); !ok {
			return Failf("Cannot index %s with %s", value.TypeName(v), value.TypeName(key))
		}
		x, err := indexValue(v, key)
		if err != nil {
			return err
		}
		s := s
		if strings.HasPrefix(e.Key, "$") {
			s = &Scope{Up: s, Name: e.Key, Value: x}
		}
		rest := func(s *Scope) error { return m.takeEntries(left[1:], v, s, in, then) }
		if e.Val == nil {
			return rest(s)
		}
		return m.takeApart(e.Val, x, s, in, rest)
	}
	switch {
	case e.KeyString != nil:
		return m.text(e.KeyString, "@text", s, in, func(k string) error { return with(k) })
	case e.KeyQuery != nil:
		return m.values(e.KeyQuery, s, in, with)
	}
	return with(strings.TrimPrefix(e.Key, "$"))
}

func (m *Machine) reduce(t *gojq.Reduce, s *Scope, in Item, out Emit) error {
	return m.Eval(t.Start, s, in, func(state Item) error {
		err := m.values(t.Query, s, in, func(v any) error {
			return m.bound(t.Patterns, v, s, in, func(s *Scope) error {
				now := state
				state = in.Computed(nil)
				return m.Eval(t.Update, s, now, func(x Item) error {
					state = x
					return nil
				})
			})
		})
		if err != nil {
			return err
		}
		return out(state)
	})
}

func (m *Machine) foreach(t *gojq.Foreach, s *Scope, in Item, out Emit) error {
	return m.Eval(t.Start, s, in, func(state Item) error {
		return m.values(t.Query, s, in, func(v any) error {
			return m.bound(t.Patterns, v, s, in, func(s *Scope) error {
				return m.Eval(t.Update, s, state, func(x Item) error {
					state = x
					if t.Extract == nil {
						return out(x)
					}
					return m.Eval(t.Extract, s, x, out)
				})
			})
		})
	})
}

func (m *Machine) variable(name string, s *Scope) (any, error) {
	if at := s.lookup(name); at != nil {
		return at.Value, nil
	}
	switch name {
	case "$ENV":
		return m.Host.Env, nil
	case "$__loc__":
		loc := value.NewObject(2)
		loc.Put("file", "<top-level>")
		loc.Put("line", float64(1+strings.Count(m.Source[:max(0, strings.Index(m.Source, "$__loc__"))], "\n")))
		return loc, nil
	}
	return nil, Failf("%s is not defined", name)
}

// call runs a function, a filter given as an argument, or a variable.
func (m *Machine) call(f *gojq.Func, s *Scope, in Item, out Emit) (*tail, error) {
	if f.Name[0] == '$' {
		v, err := m.variable(f.Name, s)
		if err != nil {
			return nil, err
		}
		return nil, out(in.Computed(v))
	}
	name := funcName(f.Name, len(f.Args))
	fn := m.Natives[name]
	if at := s.lookup(name); at != nil {
		fn = at.fn
	} else if at := m.Prelude.lookup(name); at != nil {
		fn = at.fn
	}
	switch {
	case fn == nil:
		return nil, m.delegate(f, s, in, out)
	case fn.Native != nil:
		return nil, fn.Native(m, s, f.Args, in, out)
	}
	return m.enter(fn, 0, f.Args, s, fn.scope, in, out)
}

// enter binds the arguments from the i-th on and goes into fn's body.
func (m *Machine) enter(fn *Function, i int, args []*gojq.Query, from, s *Scope, in Item, out Emit) (*tail, error) {
	for ; i < len(args); i++ {
		name, arg := fn.args[i], args[i]
		if name[0] != '$' {
			s = &Scope{Up: s, Name: name + "/0", fn: m.argument(arg, from)}
			continue
		}
		bind := func(v any) *Scope {
			value := &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeFunc, Func: &gojq.Func{Name: name}}}
			at := &Scope{Up: s, Name: name, Value: v}
			return &Scope{Up: at, Name: name[1:] + "/0", fn: &Function{body: value, scope: at}}
		}
		if m.atMostOne(arg, from, 0) {
			x, ok, err := m.one(arg, from, Item{V: in.V})
			if !ok || err != nil {
				return nil, err
			}
			s = bind(x.V)
			continue
		}
		return nil, m.values(arg, from, in, func(v any) error {
			next, err := m.enter(fn, i+1, args, from, bind(v), in, out)
			if next == nil || err != nil {
				return err
			}
			return m.Eval(next.q, next.s, next.in, out)
		})
	}
	return &tail{fn.body, s, in}, nil
}

// argument is arg as a filter to be run in from. One that only names another
// argument is that one, so that passing it on adds no step.
func (m *Machine) argument(arg *gojq.Query, from *Scope) *Function {
	if t := arg.Term; t != nil && len(arg.FuncDefs) == 0 && t.Type == gojq.TermTypeFunc && len(t.SuffixList) == 0 && len(t.Func.Args) == 0 {
		if at := from.lookup(t.Func.Name + "/0"); at != nil && at.fn != nil && at.fn.scope != at {
			return at.fn
		}
	}
	return &Function{body: arg, scope: from}
}

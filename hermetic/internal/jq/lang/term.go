package lang

import (
	"strings"

	"github.com/itchyny/gojq"

	"egressd/hermetic/internal/jq/value"
)

// term runs a term; what is left to do in last place comes back as a tail.
func (m *Machine) term(t *gojq.Term, s *Scope, in Item, out Emit) (*tail, error) {
	if n := len(t.SuffixList); n > 0 {
		return nil, m.suffixed(t, n, s, in, out)
	}
	return m.base(t, s, in, out)
}

// whole is base with nothing left to do.
func (m *Machine) whole(t *gojq.Term, s *Scope, in Item, out Emit) error {
	next, err := m.base(t, s, in, out)
	if next == nil || err != nil {
		return err
	}
	return m.Eval(next.q, next.s, next.in, out)
}

// suffixed runs t with its first n suffixes.
func (m *Machine) suffixed(t *gojq.Term, n int, s *Scope, in Item, out Emit) error {
	if n == 0 {
		return m.whole(t, s, in, out)
	}
	switch suf := t.SuffixList[n-1]; {
	case suf.Optional:
		return m.try(func(o Emit) error { return m.suffixed(t, n-1, s, in, o) }, nil, out)
	case suf.Iter:
		return m.suffixed(t, n-1, s, in, func(x Item) error { return m.iterate(x, out) })
	default:
		return m.indexKeys(suf.Index, s, in, func(key any) error {
			return m.suffixed(t, n-1, s, in, func(x Item) error { return m.index(x, key, out) })
		})
	}
}

// base runs t without its suffixes.
func (m *Machine) base(t *gojq.Term, s *Scope, in Item, out Emit) (*tail, error) {
	switch t.Type {
	case gojq.TermTypeIdentity:
		return nil, out(in)
	case gojq.TermTypeRecurse:
		return nil, m.recurse(in, out)
	case gojq.TermTypeNull:
		return nil, out(in.Computed(nil))
	case gojq.TermTypeTrue:
		return nil, out(in.Computed(true))
	case gojq.TermTypeFalse:
		return nil, out(in.Computed(false))
	case gojq.TermTypeNumber:
		v, _ := value.ParseNumber(t.Number)
		return nil, out(in.Computed(v))
	case gojq.TermTypeIndex:
		return nil, m.indexKeys(t.Index, s, in, func(key any) error { return m.index(in, key, out) })
	case gojq.TermTypeFunc:
		return m.call(t.Func, s, in, out)
	case gojq.TermTypeObject:
		return nil, m.object(t.Object.KeyVals, value.NewObject(0), s, in, out)
	case gojq.TermTypeArray:
		return nil, m.array(t.Array, s, in, out)
	case gojq.TermTypeUnary:
		return nil, m.unary(t.Unary, s, in, out)
	case gojq.TermTypeFormat:
		if t.Str == nil {
			v, err := format(t.Format, in.V)
			if err != nil {
				return nil, err
			}
			return nil, out(in.Computed(v))
		}
		return nil, m.text(t.Str, t.Format, s, in, func(v string) error { return out(in.Computed(v)) })
	case gojq.TermTypeString:
		return nil, m.text(t.Str, "@text", s, in, func(v string) error { return out(in.Computed(v)) })
	case gojq.TermTypeQuery:
		return &tail{t.Query, s, in}, nil
	}
	return m.control(t, s, in, out)
}

func (m *Machine) control(t *gojq.Term, s *Scope, in Item, out Emit) (*tail, error) {
	switch t.Type {
	case gojq.TermTypeIf:
		return m.ifThen(t.If, 0, s, in, out)
	case gojq.TermTypeTry:
		var handler func(any) error
		if t.Try.Catch != nil {
			handler = func(v any) error { return m.Eval(t.Try.Catch, s, in.Computed(v), out) }
		}
		return nil, m.try(func(o Emit) error { return m.Eval(t.Try.Body, s, in, o) }, handler, out)
	case gojq.TermTypeReduce:
		return nil, m.reduce(t.Reduce, s, in, out)
	case gojq.TermTypeForeach:
		return nil, m.foreach(t.Foreach, s, in, out)
	case gojq.TermTypeLabel:
		label := new(int)
		err := m.Eval(t.Label.Body, &Scope{Up: s, Name: "*" + t.Label.Ident, label: label}, in, out)
		if b, ok := err.(breaking); ok && b.label == label {
			err = nil
		}
		return nil, err
	case gojq.TermTypeBreak:
		if at := s.lookup("*" + t.Break); at != nil {
			return nil, breaking{at.label}
		}
	}
	return nil, Failf("unknown term %s", t)
}

// ifThen runs the i-th condition and what follows from it.
func (m *Machine) ifThen(t *gojq.If, i int, s *Scope, in Item, out Emit) (*tail, error) {
	cond, then := t.Cond, t.Then
	if i > 0 {
		cond, then = t.Elif[i-1].Cond, t.Elif[i-1].Then
	}
	branch := func(v any) (*tail, error) {
		switch {
		case value.Truthy(v):
			return &tail{then, s, in}, nil
		case i < len(t.Elif):
			return m.ifThen(t, i+1, s, in, out)
		case t.Else == nil:
			return nil, out(in)
		}
		return &tail{t.Else, s, in}, nil
	}
	if m.atMostOne(cond, s, 0) {
		v, ok, err := m.one(cond, s, Item{V: in.V})
		if !ok || err != nil {
			return nil, err
		}
		return branch(v.V)
	}
	return nil, m.values(cond, s, in, func(v any) error {
		next, err := branch(v)
		if next == nil || err != nil {
			return err
		}
		return m.Eval(next.q, next.s, next.in, out)
	})
}

// try runs body; its own failures go to handler, nil: nowhere.
func (m *Machine) try(body func(Emit) error, handler func(any) error, out Emit) error {
	depth := m.Depth
	switch e := body(guarded(out)).(type) {
	case stopped:
		return e.err
	case *Failure:
		m.Depth = depth
		if handler != nil {
			return handler(e.V)
		}
		return nil
	case nil:
		return nil
	default:
		return e
	}
}

func (m *Machine) unary(t *gojq.Unary, s *Scope, in Item, out Emit) error {
	return m.values(&gojq.Query{Term: t.Term}, s, in, func(v any) error {
		f, ok := value.Number(v)
		if !ok {
			return Failf("%s cannot be negated", described(v))
		}
		if t.Op == gojq.OpAdd {
			return out(in.Computed(v))
		}
		if l, ok := v.(value.Literal); ok {
			text, negative := strings.CutPrefix(l.Text, "-")
			if !negative {
				text = "-" + text
			}
			return out(in.Computed(value.Literal{F: -f, Text: text}))
		}
		return out(in.Computed(-f))
	})
}

func (m *Machine) array(t *gojq.Array, s *Scope, in Item, out Emit) error {
	all := []any{}
	if t.Query != nil {
		size := 0
		err := m.values(t.Query, s, in, func(v any) error {
			all = append(all, v)
			if size++; size%1024 == 0 && int64(size)*16 > m.Budget.Limits.Memory/4 {
				return Failf("memory exhausted")
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return out(in.Computed(all[:len(all):len(all)]))
}

// object goes on making o with the entries that are left.
func (m *Machine) object(left []*gojq.ObjectKeyVal, o *value.Object, s *Scope, in Item, out Emit) error {
	if len(left) == 0 {
		return out(in.Computed(o))
	}
	kv := left[0]
	with := func(k, v any) error {
		key, ok := k.(string)
		if !ok {
			return Failf("Object keys must be strings")
		}
		return m.object(left[1:], o.Set(key, v), s, in, out)
	}
	return m.objectKey(kv, s, in, func(k any) error {
		switch {
		case kv.Val != nil:
			return m.values(kv.Val, s, in, func(v any) error { return with(k, v) })
		case kv.Key != "" && kv.Key[0] == '$':
			v, err := m.variable(kv.Key, s)
			if err != nil {
				return err
			}
			return with(k, v)
		}
		v, err := indexValue(in.V, k)
		if err != nil {
			return err
		}
		return with(k, v)
	})
}

func (m *Machine) objectKey(kv *gojq.ObjectKeyVal, s *Scope, in Item, out func(any) error) error {
	switch {
	case kv.KeyString != nil:
		return m.text(kv.KeyString, "@text", s, in, func(v string) error { return out(v) })
	case kv.KeyQuery != nil:
		return m.values(kv.KeyQuery, s, in, out)
	case kv.Key[0] == '$' && kv.Val != nil:
		v, err := m.variable(kv.Key, s)
		if err != nil {
			return err
		}
		return out(v)
	}
	return out(strings.TrimPrefix(kv.Key, "$"))
}

// text makes the outputs of a string with \(…) in it; those of the first place
// change fastest.
func (m *Machine) text(t *gojq.String, as string, s *Scope, in Item, out func(string) error) error {
	if t.Queries == nil {
		return out(t.Str)
	}
	return m.textFrom(t.Queries, as, "", s, in, out)
}

func (m *Machine) textFrom(parts []*gojq.Query, as, end string, s *Scope, in Item, out func(string) error) error {
	if len(parts) == 0 {
		return out(end)
	}
	last := parts[len(parts)-1]
	if last.Term != nil && last.Term.Type == gojq.TermTypeString && last.Term.Str.Queries == nil {
		return m.textFrom(parts[:len(parts)-1], as, last.Term.Str.Str+end, s, in, out)
	}
	return m.values(last, s, in, func(v any) error {
		text, err := format(as, v)
		if err != nil {
			return err
		}
		if int64(len(text)+len(end)) > m.Budget.Limits.String {
			return Failf("String too long")
		}
		return m.textFrom(parts[:len(parts)-1], as, text+end, s, in, out)
	})
}

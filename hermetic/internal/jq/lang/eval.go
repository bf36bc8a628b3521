// Package lang is the language of jq, for jq and yq:
//
//	m := &lang.Machine{Ctx: ctx, Budget: budget, Source: program, Host: host}
//	err := m.Load()
//	err = m.Eval(query, m.Prelude, lang.Item{V: input}, emit)
//
// The language is parsed by gojq (v0.12.20) and run here, because gojq's objects
// forget the order of their keys, which jq keeps in what it prints.
package lang

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/itchyny/gojq"

	"egressd/hermetic/internal/jq/value"
	"egressd/hermetic/limits"
)

// Item is a value on its way through a filter. path is where it lies in the
// document while paths are looked for; nil otherwise.
type Item struct {
	V    any
	path *path
}

// path is a list of keys, the last one first.
type path struct {
	up  *path
	key any
}

var (
	rootPath = &path{} // of the document itself
	noPath   = &path{} // of what is no part of it
)

func (p *path) Keys() []any {
	n := 0
	for q := p; q != rootPath; q = q.up {
		n++
	}
	out := make([]any, n)
	for q := p; q != rootPath; q = q.up {
		n--
		out[n] = q.key
	}
	return out
}

// Computed is v as the result of a computation on the way of in.
func (in Item) Computed(v any) Item {
	if in.path != nil {
		return Item{v, noPath}
	}
	return Item{v, nil}
}

// Emit takes one output; its error ends the filter that made it.
type Emit func(Item) error

// Scope is a chain of what is defined: a variable, a function or a label.
type Scope struct {
	Up    *Scope
	Name  string // "$x", or "f/1"
	Value any
	fn    *Function
	label *int
}

// Function is a definition or a filter given as an argument.
type Function struct {
	args   []string
	body   *gojq.Query
	scope  *Scope // where it was made; with itself in it when it is a definition
	Native func(m *Machine, s *Scope, args []*gojq.Query, in Item, out Emit) error
	least  int8 // 1: at most one output, 2: maybe more, 0: not known yet
}

// Machine runs one program.
type Machine struct {
	Ctx     context.Context
	Budget  *limits.Budget
	Natives map[string]*Function
	Prelude *Scope
	Depth   int
	steps   int
	Source  string
	Host    Host
	Gojq    map[string]*gojq.Code

	patterns map[string]*pattern
}

// Host is what filters ask of the command.
type Host struct {
	Input    func() (any, error) // io.EOF at the end
	Filename func() any
	Line     func() int
	Message  func(string)
	Env      *value.Object
	Now      func() float64
}

// Failure is an error that try can catch.
type Failure struct{ V any }

func (f *Failure) Error() string {
	if s, ok := f.V.(string); ok {
		return s
	}
	return value.Tojson(f.V) + " (not a string)"
}

// breaking leaves the label that it points to.
type breaking struct{ label *int }

func (breaking) Error() string { return "break" }

// Failf is an error that a program can catch.
func Failf(format string, args ...any) error { return &Failure{fmt.Sprintf(format, args...)} }

// MaxDepth bounds calls within calls; 64 MiB of stack hold more.
const MaxDepth = 20000

var errDepth = errors.New("the program calls itself too deeply")

func (m *Machine) step() error {
	if m.steps++; m.steps%1024 == 0 {
		if err := m.Ctx.Err(); err != nil {
			return err
		}
		return m.Budget.Steps(1024)
	}
	return nil
}

// Eval runs q on in. A filter in last place is run in this loop and not by a
// call, so that recursion in last place takes no stack.
func (m *Machine) Eval(q *gojq.Query, s *Scope, in Item, out Emit) error {
	m.Depth++
	defer func() { m.Depth-- }()
	if m.Depth > MaxDepth {
		return errDepth
	}
	for {
		if err := m.step(); err != nil {
			return err
		}
		for _, d := range q.FuncDefs {
			s = define(s, d)
		}
		if q.Term != nil {
			next, err := m.term(q.Term, s, in, out)
			if next == nil || err != nil {
				return err
			}
			q, s, in = next.q, next.s, next.in
			continue
		}
		switch {
		case q.Op == gojq.OpPipe && q.Patterns != nil:
			return m.bind(q, s, in, out)
		case q.Op == gojq.OpPipe:
			if !m.atMostOne(q.Left, s, 0) {
				right := q.Right
				return m.Eval(q.Left, s, in, func(x Item) error { return m.Eval(right, s, x, out) })
			}
			x, ok, err := m.one(q.Left, s, in)
			if !ok || err != nil {
				return err
			}
			q, in = q.Right, x
		case q.Op == gojq.OpComma:
			if err := m.Eval(q.Left, s, in, out); err != nil {
				return err
			}
			q = q.Right
		default:
			return m.operator(q, s, in, out)
		}
		// The definitions of q itself hold for its parts only.
	}
}

// tail is what is left to do in last place.
type tail struct {
	q  *gojq.Query
	s  *Scope
	in Item
}

func define(s *Scope, d *gojq.FuncDef) *Scope {
	f := &Function{args: d.Args, body: d.Body}
	f.scope = &Scope{Up: s, Name: funcName(d.Name, len(d.Args)), fn: f}
	return f.scope
}

func funcName(name string, args int) string { return name + "/" + strconv.Itoa(args) }

// one is the first output of q, and the only one that is asked for.
func (m *Machine) one(q *gojq.Query, s *Scope, in Item) (x Item, ok bool, err error) {
	err = m.Eval(q, s, in, func(v Item) error {
		x, ok = v, true
		return nil
	})
	return x, ok, err
}

// values runs q for its values alone, where no path goes on.
func (m *Machine) values(q *gojq.Query, s *Scope, in Item, out func(any) error) error {
	return m.Eval(q, s, Item{V: in.V}, func(x Item) error { return out(x.V) })
}

// lookup finds a name; fn and value are those of the nearest definition.
func (s *Scope) lookup(name string) *Scope {
	for ; s != nil; s = s.Up {
		if s.Name == name {
			return s
		}
	}
	return nil
}

func (m *Machine) operator(q *gojq.Query, s *Scope, in Item, out Emit) error {
	switch q.Op {
	case gojq.OpAnd, gojq.OpOr:
		return m.values(q.Left, s, in, func(l any) error {
			if value.Truthy(l) == (q.Op == gojq.OpOr) {
				return out(in.Computed(q.Op == gojq.OpOr))
			}
			return m.values(q.Right, s, in, func(r any) error { return out(in.Computed(value.Truthy(r))) })
		})
	case gojq.OpAlt:
		return m.alternative(q, s, in, out)
	case gojq.OpAssign, gojq.OpModify, gojq.OpUpdateAdd, gojq.OpUpdateSub, gojq.OpUpdateMul, gojq.OpUpdateDiv, gojq.OpUpdateMod, gojq.OpUpdateAlt:
		return m.update(q, s, in, out)
	}
	return m.values(q.Right, s, in, func(r any) error {
		return m.values(q.Left, s, in, func(l any) error {
			v, err := operate(q.Op, l, r)
			if err != nil {
				return err
			}
			return out(in.Computed(v))
		})
	})
}

// stopped wraps an error that out reported, so that it is not taken for one of
// the filter.
type stopped struct{ err error }

func (s stopped) Error() string { return s.err.Error() }

func guarded(out Emit) Emit {
	return func(x Item) error {
		if err := out(x); err != nil {
			return stopped{err}
		}
		return nil
	}
}

// alternative is a // b: errors of a count as no output.
func (m *Machine) alternative(q *gojq.Query, s *Scope, in Item, out Emit) error {
	found := false
	err := m.Eval(q.Left, s, in, guarded(func(x Item) error {
		if !value.Truthy(x.V) {
			return nil
		}
		found = true
		return out(x)
	}))
	switch e := err.(type) {
	case stopped:
		return e.err
	case *Failure, nil:
	default:
		return err
	}
	if found {
		return nil
	}
	return m.Eval(q.Right, s, in, out)
}

// atMostOne reports whether q surely has no second output, so that it may be
// run to its end before its output is used.
func (m *Machine) atMostOne(q *gojq.Query, s *Scope, depth int) bool {
	if q == nil {
		return true
	}
	if depth > 6 || len(q.FuncDefs) > 0 || q.Patterns != nil {
		return false
	}
	if q.Term == nil {
		switch q.Op {
		case gojq.OpComma, gojq.OpAssign, gojq.OpUpdateAdd, gojq.OpUpdateSub, gojq.OpUpdateMul, gojq.OpUpdateDiv, gojq.OpUpdateMod, gojq.OpUpdateAlt:
			return false
		case gojq.OpModify:
			return true
		}
		return m.atMostOne(q.Left, s, depth+1) && m.atMostOne(q.Right, s, depth+1)
	}
	t := q.Term
	for _, suf := range t.SuffixList {
		if suf.Iter || !m.indexOnce(suf.Index, s, depth) {
			return false
		}
	}
	switch t.Type {
	case gojq.TermTypeIdentity, gojq.TermTypeNull, gojq.TermTypeTrue, gojq.TermTypeFalse, gojq.TermTypeNumber, gojq.TermTypeArray, gojq.TermTypeReduce:
		return true
	case gojq.TermTypeIndex:
		return m.indexOnce(t.Index, s, depth)
	case gojq.TermTypeString:
		return len(t.Str.Queries) == 0
	case gojq.TermTypeUnary:
		return m.atMostOne(&gojq.Query{Term: t.Unary.Term}, s, depth+1)
	case gojq.TermTypeQuery:
		return m.atMostOne(t.Query, s, depth+1)
	case gojq.TermTypeIf:
		return len(t.If.Elif) == 0 && m.atMostOne(t.If.Cond, s, depth+1) && m.atMostOne(t.If.Then, s, depth+1) && m.atMostOne(t.If.Else, s, depth+1)
	case gojq.TermTypeFunc:
		return m.callOnce(t.Func, s, depth)
	}
	return false
}

func (m *Machine) indexOnce(i *gojq.Index, s *Scope, depth int) bool {
	return i == nil || (i.Str == nil || len(i.Str.Queries) == 0) && m.atMostOne(i.Start, s, depth+1) && m.atMostOne(i.End, s, depth+1)
}

func (m *Machine) callOnce(f *gojq.Func, s *Scope, depth int) bool {
	if f.Name[0] == '$' {
		return true
	}
	switch funcName(f.Name, len(f.Args)) {
	case "empty/0", "error/0", "not/0", "length/0", "tostring/0", "type/0", "keys/0", "add/0", "tonumber/0":
		return s.lookup(funcName(f.Name, len(f.Args))) == nil
	case "select/1":
		return s.lookup("select/1") == nil && m.atMostOne(f.Args[0], s, depth+1)
	}
	if len(f.Args) > 0 {
		return false
	}
	at := s.lookup(funcName(f.Name, 0))
	if at == nil || at.fn == nil || at.fn.body == nil || at.fn.scope == at {
		return false
	}
	if at.fn.least == 0 {
		at.fn.least = 2
		if m.atMostOne(at.fn.body, at.fn.scope, depth+1) {
			at.fn.least = 1
		}
	}
	return at.fn.least == 1
}

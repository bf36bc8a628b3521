package awk

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"egressd/hermetic/internal/awk/syntax"
	"egressd/hermetic/internal/awk/value"
)

// cellSize is about what an element of an array takes beside its key.
const cellSize = 120

// cell is the variable that n names.
func (in *interp) cell(n *syntax.NameExpr) *value.Cell {
	if n.Local {
		return in.frame[n.Slot]
	}
	return in.globals[n.Slot]
}

// element is an element of an array; it is made when it is not there.
func (in *interp) element(e *syntax.IndexExpr) (*value.Cell, error) {
	key, err := in.key(e.Subs)
	if err != nil {
		return nil, err
	}
	a, err := in.arrayOf(e.Array)
	if err != nil {
		return nil, err
	}
	return in.at(a, key)
}

func (in *interp) at(a *value.Array, key string) (*value.Cell, error) {
	if c := a.M[key]; c != nil {
		return c, nil
	}
	if in.size += int64(len(key) + cellSize); in.size > in.c.Budget.Limits.Memory/2 {
		return nil, errors.New("memory exhausted by arrays")
	}
	return a.Get(key), nil
}

// key joins subscripts.
func (in *interp) key(subs []syntax.Expr) (string, error) {
	if len(subs) == 1 {
		v, err := in.eval(subs[0])
		return v.Text(in.convfmt), err
	}
	var b strings.Builder
	for i, s := range subs {
		v, err := in.eval(s)
		if err != nil {
			return "", err
		}
		if i > 0 {
			b.WriteString(in.subsep)
		}
		b.WriteString(v.Text(in.convfmt))
	}
	return b.String(), nil
}

func (in *interp) eval(e syntax.Expr) (value.Value, error) {
	switch e := e.(type) {
	case *syntax.NumExpr:
		return e.V, nil
	case *syntax.StrExpr:
		return e.V, nil
	case *syntax.RegexExpr:
		ok, err := in.matches(e, in.rec.Text())
		return value.Boolean(ok), err
	case *syntax.NameExpr:
		return in.variable(e)
	case *syntax.IndexExpr:
		c, err := in.element(e)
		if err == nil && c.Arr != nil {
			err = in.asScalar(e)
		}
		if err != nil {
			return value.Value{}, err
		}
		return c.V, nil
	case *syntax.FieldExpr:
		n, err := in.eval(e.Index)
		if err != nil {
			return value.Value{}, err
		}
		return in.rec.field(n.Number())
	case *syntax.AssignExpr:
		return in.assign(e)
	case *syntax.CondExpr:
		ok, err := in.Truth(e.Cond)
		if err != nil {
			return value.Value{}, err
		}
		if ok {
			return in.eval(e.Yes)
		}
		return in.eval(e.No)
	case *syntax.BinExpr:
		return in.binary(e)
	case *syntax.UnaryExpr:
		return in.unary(e)
	case *syntax.IncExpr:
		return in.increment(e)
	}
	return in.evalMore(e)
}

func (in *interp) evalMore(e syntax.Expr) (value.Value, error) {
	switch e := e.(type) {
	case *syntax.GroupExpr:
		if len(e.List) == 1 {
			return in.eval(e.List[0])
		}
		key, err := in.key(e.List)
		return value.Str(key), err
	case *syntax.InExpr:
		key, err := in.key(e.Subs)
		if err != nil {
			return value.Value{}, err
		}
		a, err := in.arrayOf(e.Array)
		if err != nil {
			return value.Value{}, err
		}
		_, ok := a.M[key]
		return value.Boolean(ok), nil
	case *syntax.MatchExpr:
		v, err := in.eval(e.E)
		if err != nil {
			return value.Value{}, err
		}
		ok, err := in.matches(e.Re, v.Text(in.convfmt))
		return value.Boolean(ok != e.Negate), err
	case *syntax.CallExpr:
		return in.call(e)
	case *syntax.IndirectExpr:
		return in.indirect(e)
	case *syntax.BuiltinExpr:
		return in.builtin(e)
	case *syntax.GetlineExpr:
		return in.getline(e)
	}
	return value.Value{}, fmt.Errorf("unknown expression %T", e)
}

func (in *interp) variable(e *syntax.NameExpr) (value.Value, error) {
	if !e.Local {
		switch in.special[e.Slot] {
		case svNR:
			return value.Num(in.nr), nil
		case svFNR:
			return value.Num(in.fnr), nil
		case svNF:
			n, err := in.rec.count()
			return value.Num(float64(n)), err
		}
	}
	c := in.cell(e)
	if c.Arr != nil {
		return value.Value{}, fmt.Errorf("attempt to use array `%s' in a scalar context", e.Name)
	}
	return c.V, nil
}

// matches reports whether e, a regex, matches text.
func (in *interp) matches(e syntax.Expr, text string) (bool, error) {
	src, err := in.regexSource(e)
	if err != nil {
		return false, err
	}
	re, err := in.compile(src)
	if err != nil {
		return false, err
	}
	return re.Match([]byte(text))
}

// regexSource is the regex that e is, or whose text it gives.
func (in *interp) regexSource(e syntax.Expr) (string, error) {
	if re, ok := e.(*syntax.RegexExpr); ok {
		return re.Src, nil
	}
	if g, ok := e.(*syntax.GroupExpr); ok && len(g.List) == 1 {
		return in.regexSource(g.List[0])
	}
	v, err := in.eval(e)
	return v.Text(in.convfmt), err
}

func (in *interp) assign(e *syntax.AssignExpr) (value.Value, error) {
	if e.Op != "" && !isVariable(e.Target) {
		target, err := in.pinned(e.Target)
		if err != nil {
			return value.Value{}, err
		}
		e = &syntax.AssignExpr{Op: e.Op, Target: target, Value: e.Value}
	}
	v, err := in.eval(e.Value)
	if err != nil {
		return value.Value{}, err
	}
	if e.Op != "" {
		was, err := in.eval(e.Target)
		if err != nil {
			return value.Value{}, err
		}
		n, err := arithmetic(e.Op, was.Number(), v.Number())
		if err != nil {
			return value.Value{}, err
		}
		v = value.Num(n)
	}
	return v, in.assignTo(e.Target, v)
}

// assignTo sets what target names.
func (in *interp) assignTo(target syntax.Expr, v value.Value) error {
	switch t := target.(type) {
	case *syntax.NameExpr:
		if !t.Local {
			return in.setSlot(t.Slot, v)
		}
		c := in.frame[t.Slot]
		if c.Arr != nil {
			return fmt.Errorf("attempt to use array `%s' in a scalar context", t.Name)
		}
		c.V = v
		return nil
	case *syntax.IndexExpr:
		c, err := in.element(t)
		if err == nil && c.Arr != nil {
			err = in.asScalar(t)
		}
		if err != nil {
			return err
		}
		in.size += int64(len(v.S) - len(c.V.S))
		c.V = v
		return nil
	case *syntax.FieldExpr:
		n, err := in.eval(t.Index)
		if err != nil {
			return err
		}
		return in.rec.setField(n.Number(), v)
	case *syntax.GroupExpr:
		if len(t.List) == 1 {
			return in.assignTo(t.List[0], v)
		}
	}
	return errors.New("assignment to what is no variable")
}

// setSlot sets a global variable, and what follows from it.
func (in *interp) setSlot(slot int, v value.Value) error {
	c := in.globals[slot]
	if c.Arr != nil {
		return errors.New("attempt to use array in a scalar context")
	}
	c.V = v
	text := func() string { return v.Text(in.convfmt) }
	switch in.special[slot] {
	case svNR:
		in.nr = v.Number()
	case svFNR:
		in.fnr = v.Number()
	case svNF:
		return in.rec.setCount(v.Number())
	case svFS:
		return in.rec.setFS(text())
	case svFPAT:
		return in.rec.setFPAT(text())
	case svFIELDWIDTHS:
		return in.rec.setWidths(text())
	case svOFS:
		in.rec.Text() // a record that is to be made anew is so with the old one
		in.ofs = text()
	case svORS:
		in.ors = text()
	case svRS:
		return in.rec.setRS(text())
	case svSUBSEP:
		in.subsep = text()
	case svCONVFMT:
		in.convfmt = text()
	case svOFMT:
		in.ofmt = text()
	case svIGNORECASE:
		in.ignoreCase = v.Truth()
		return in.rec.refresh()
	}
	return nil
}

func arithmetic(op string, a, b float64) (float64, error) {
	switch op {
	case "+":
		return a + b, nil
	case "-":
		return a - b, nil
	case "*":
		return a * b, nil
	case "/":
		if b == 0 {
			return 0, errors.New("division by zero attempted")
		}
		return a / b, nil
	case "%":
		if b == 0 {
			return 0, errors.New("division by zero attempted in `%'")
		}
		return math.Mod(a, b), nil
	}
	return math.Pow(a, b), nil
}

func (in *interp) binary(e *syntax.BinExpr) (value.Value, error) {
	l, err := in.eval(e.L)
	if err != nil {
		return value.Value{}, err
	}
	switch e.Op {
	case "&&", "||":
		if l.Truth() == (e.Op == "||") {
			return value.Boolean(e.Op == "||"), nil
		}
		ok, err := in.Truth(e.R)
		return value.Boolean(ok), err
	}
	r, err := in.eval(e.R)
	if err != nil {
		return value.Value{}, err
	}
	switch e.Op {
	case " ":
		s := l.Text(in.convfmt) + r.Text(in.convfmt)
		return value.Str(s), in.limit(len(s))
	case "<":
		return value.Boolean(in.compare(l, r) < 0), nil
	case "<=":
		return value.Boolean(in.compare(l, r) <= 0 && !nan(l, r)), nil
	case ">":
		return value.Boolean(in.compare(l, r) > 0), nil
	case ">=":
		return value.Boolean(in.compare(l, r) >= 0 && !nan(l, r)), nil
	case "==":
		return value.Boolean(in.compare(l, r) == 0 && !nan(l, r)), nil
	case "!=":
		return value.Boolean(in.compare(l, r) != 0 || nan(l, r)), nil
	}
	n, err := arithmetic(e.Op, l.Number(), r.Number())
	return value.Num(n), err
}

func nan(l, r value.Value) bool {
	return l.Kind == value.VNumber && math.IsNaN(l.N) || r.Kind == value.VNumber && math.IsNaN(r.N)
}

// compare compares as numbers when both are, and else as strings.
func (in *interp) compare(l, r value.Value) int {
	a, ok := l.Numeric()
	if b, ok2 := r.Numeric(); ok && ok2 {
		switch {
		case a < b:
			return -1
		case a > b:
			return 1
		}
		return 0
	}
	s, t := l.Text(in.convfmt), r.Text(in.convfmt)
	if in.ignoreCase {
		s, t = strings.ToLower(s), strings.ToLower(t)
	}
	return strings.Compare(s, t)
}

func (in *interp) unary(e *syntax.UnaryExpr) (value.Value, error) {
	v, err := in.eval(e.E)
	if err != nil {
		return value.Value{}, err
	}
	switch e.Op {
	case "!":
		return value.Boolean(!v.Truth()), nil
	case "-":
		return value.Num(-v.Number()), nil
	}
	return value.Num(v.Number()), nil
}

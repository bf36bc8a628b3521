package awk

import (
	"egressd/hermetic/internal/awk/syntax"
	"egressd/hermetic/internal/awk/value"
)

// pinned is a target whose subscripts are reckoned once, for what reads and
// then sets it.
func (in *interp) pinned(target syntax.Expr) (syntax.Expr, error) {
	switch t := target.(type) {
	case *syntax.IndexExpr:
		array, err := in.pinned(t.Array)
		if err != nil {
			return nil, err
		}
		key, err := in.key(t.Subs)
		return &syntax.IndexExpr{Array: array, Subs: []syntax.Expr{&syntax.StrExpr{V: value.Str(key)}}}, err
	case *syntax.FieldExpr:
		n, err := in.eval(t.Index)
		return &syntax.FieldExpr{Index: &syntax.NumExpr{V: value.Num(n.Number())}}, err
	case *syntax.GroupExpr:
		if len(t.List) == 1 {
			return in.pinned(t.List[0])
		}
	}
	return target, nil
}

func isVariable(e syntax.Expr) bool {
	_, ok := e.(*syntax.NameExpr)
	return ok
}

func (in *interp) increment(e *syntax.IncExpr) (value.Value, error) {
	if !isVariable(e.Target) {
		target, err := in.pinned(e.Target)
		if err != nil {
			return value.Value{}, err
		}
		e = &syntax.IncExpr{Target: target, By: e.By, Prefix: e.Prefix}
	}
	v, err := in.eval(e.Target)
	if err != nil {
		return value.Value{}, err
	}
	was := v.Number()
	if err := in.assignTo(e.Target, value.Num(was+e.By)); err != nil {
		return value.Value{}, err
	}
	if e.Prefix {
		return value.Num(was + e.By), nil
	}
	return value.Num(was), nil
}

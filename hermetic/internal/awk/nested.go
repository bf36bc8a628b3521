package awk

import (
	"fmt"

	"egressd/hermetic/internal/awk/syntax"
	"egressd/hermetic/internal/awk/value"
)

// place is the variable or element that e names, nil when e names none or one
// that means something to awk itself.
func (in *interp) place(e syntax.Expr) (*value.Cell, error) {
	switch e := e.(type) {
	case *syntax.NameExpr:
		if e.Local || in.special[e.Slot] == svNone {
			return in.cell(e), nil
		}
	case *syntax.IndexExpr:
		return in.element(e)
	}
	return nil, nil
}

// arrayOf is the array that a name or an element is, which becomes one here.
func (in *interp) arrayOf(e syntax.Expr) (*value.Array, error) {
	switch e := e.(type) {
	case *syntax.NameExpr:
		c := in.cell(e)
		if !c.IsArray() && (c.V.Kind != value.VUnset || !e.Local && in.special[e.Slot] != svNone) {
			what := "scalar"
			if e.Local {
				what = "scalar parameter"
			}
			return nil, fmt.Errorf("attempt to use %s `%s' as an array", what, e.Name)
		}
		return c.Array(), nil
	case *syntax.IndexExpr:
		c, err := in.element(e)
		if err != nil {
			return nil, err
		}
		if !c.IsArray() && c.V.Kind != value.VUnset {
			name, _ := in.nameOf(e)
			return nil, fmt.Errorf("attempt to use scalar `%s' as an array", name)
		}
		return c.Array(), nil
	}
	return nil, errArray
}

// nameOf is an element as messages show it: a["1"].
func (in *interp) nameOf(e *syntax.IndexExpr) (string, error) {
	key, err := in.key(e.Subs)
	switch a := e.Array.(type) {
	case *syntax.NameExpr:
		return fmt.Sprintf("%s[%q]", a.Name, key), err
	case *syntax.IndexExpr:
		outer, _ := in.nameOf(a)
		return fmt.Sprintf("%s[%q]", outer, key), err
	}
	return "", err
}

func (in *interp) asScalar(e *syntax.IndexExpr) error {
	name, _ := in.nameOf(e)
	return fmt.Errorf("attempt to use array `%s' in a scalar context", name)
}

// indirect calls the function that a variable names: one of the program's or
// one of awk's own.
func (in *interp) indirect(e *syntax.IndirectExpr) (value.Value, error) {
	v, err := in.eval(e.Name)
	if err != nil {
		return value.Value{}, err
	}
	name := v.Text(in.convfmt)
	if f := in.prog.Funcs[name]; f != nil && f.Defined {
		return in.call(&syntax.CallExpr{F: f, Args: e.Args, Line: e.Line})
	}
	n, ok := syntax.Builtins[name]
	switch {
	case !ok:
		return value.Value{}, fmt.Errorf("function called indirectly through `%s' does not exist", e.Name.(*syntax.NameExpr).Name)
	case len(e.Args) < n[0] || len(e.Args) > n[1]:
		return value.Value{}, fmt.Errorf("%s: called with %d arguments", name, len(e.Args))
	}
	return in.builtin(&syntax.BuiltinExpr{Name: name, Args: e.Args, Line: e.Line})
}

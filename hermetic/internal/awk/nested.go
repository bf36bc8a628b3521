package awk

import "fmt"

// isArray reports whether c has become an array; a nil cell has not.
func (c *cell) isArray() bool {
	return c != nil && (c.arr != nil || c.origin != nil && c.origin.isArray())
}

// place is the variable or element that e names, nil when e names none or one
// that means something to awk itself.
func (in *interp) place(e expr) (*cell, error) {
	switch e := e.(type) {
	case *nameExpr:
		if e.local || in.special[e.slot] == svNone {
			return in.cell(e), nil
		}
	case *indexExpr:
		return in.element(e)
	}
	return nil, nil
}

// arrayOf is the array that a name or an element is, which becomes one here.
func (in *interp) arrayOf(e expr) (*array, error) {
	switch e := e.(type) {
	case *nameExpr:
		c := in.cell(e)
		if !c.isArray() && (c.v.kind != vUnset || !e.local && in.special[e.slot] != svNone) {
			what := "scalar"
			if e.local {
				what = "scalar parameter"
			}
			return nil, fmt.Errorf("attempt to use %s `%s' as an array", what, e.name)
		}
		return c.array(), nil
	case *indexExpr:
		c, err := in.element(e)
		if err != nil {
			return nil, err
		}
		if !c.isArray() && c.v.kind != vUnset {
			name, _ := in.nameOf(e)
			return nil, fmt.Errorf("attempt to use scalar `%s' as an array", name)
		}
		return c.array(), nil
	}
	return nil, errArray
}

// nameOf is an element as messages show it: a["1"].
func (in *interp) nameOf(e *indexExpr) (string, error) {
	key, err := in.key(e.subs)
	switch a := e.array.(type) {
	case *nameExpr:
		return fmt.Sprintf("%s[%q]", a.name, key), err
	case *indexExpr:
		outer, _ := in.nameOf(a)
		return fmt.Sprintf("%s[%q]", outer, key), err
	}
	return "", err
}

func (in *interp) asScalar(e *indexExpr) error {
	name, _ := in.nameOf(e)
	return fmt.Errorf("attempt to use array `%s' in a scalar context", name)
}

// indirect calls the function that a variable names: one of the program's or
// one of awk's own.
func (in *interp) indirect(e *indirectExpr) (value, error) {
	v, err := in.eval(e.name)
	if err != nil {
		return value{}, err
	}
	name := v.text(in.convfmt)
	if f := in.prog.funcs[name]; f != nil && f.defined {
		return in.call(&callExpr{f: f, args: e.args, line: e.line})
	}
	n, ok := builtins[name]
	switch {
	case !ok:
		return value{}, fmt.Errorf("function called indirectly through `%s' does not exist", e.name.(*nameExpr).name)
	case len(e.args) < n[0] || len(e.args) > n[1]:
		return value{}, fmt.Errorf("%s: called with %d arguments", name, len(e.args))
	}
	return in.builtin(&builtinExpr{name: name, args: e.args, line: e.line})
}

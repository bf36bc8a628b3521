package awk

import (
	"errors"
	"fmt"
	"math"
	"strings"
)

// cellSize is about what an element of an array takes beside its key.
const cellSize = 120

// cell is the variable that n names.
func (in *interp) cell(n *nameExpr) *cell {
	if n.local {
		return in.frame[n.slot]
	}
	return in.globals[n.slot]
}

// element is an element of an array; it is made when it is not there.
func (in *interp) element(e *indexExpr) (*cell, error) {
	key, err := in.key(e.subs)
	if err != nil {
		return nil, err
	}
	a, err := in.arrayOf(e.array)
	if err != nil {
		return nil, err
	}
	return in.at(a, key)
}

func (in *interp) at(a *array, key string) (*cell, error) {
	if c := a.m[key]; c != nil {
		return c, nil
	}
	if in.size += int64(len(key) + cellSize); in.size > in.c.Budget.Limits.Memory/2 {
		return nil, errors.New("memory exhausted by arrays")
	}
	return a.get(key), nil
}

// key joins subscripts.
func (in *interp) key(subs []expr) (string, error) {
	if len(subs) == 1 {
		v, err := in.eval(subs[0])
		return v.text(in.convfmt), err
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
		b.WriteString(v.text(in.convfmt))
	}
	return b.String(), nil
}

func (in *interp) eval(e expr) (value, error) {
	switch e := e.(type) {
	case *numExpr:
		return e.v, nil
	case *strExpr:
		return e.v, nil
	case *regexExpr:
		ok, err := in.matches(e, in.rec.text())
		return boolean(ok), err
	case *nameExpr:
		return in.variable(e)
	case *indexExpr:
		c, err := in.element(e)
		if err == nil && c.arr != nil {
			err = in.asScalar(e)
		}
		if err != nil {
			return value{}, err
		}
		return c.v, nil
	case *fieldExpr:
		n, err := in.eval(e.index)
		if err != nil {
			return value{}, err
		}
		return in.rec.field(n.number())
	case *assignExpr:
		return in.assign(e)
	case *condExpr:
		ok, err := in.truth(e.cond)
		if err != nil {
			return value{}, err
		}
		if ok {
			return in.eval(e.yes)
		}
		return in.eval(e.no)
	case *binExpr:
		return in.binary(e)
	case *unaryExpr:
		return in.unary(e)
	case *incExpr:
		return in.increment(e)
	}
	return in.evalMore(e)
}

func (in *interp) evalMore(e expr) (value, error) {
	switch e := e.(type) {
	case *groupExpr:
		if len(e.list) == 1 {
			return in.eval(e.list[0])
		}
		key, err := in.key(e.list)
		return str(key), err
	case *inExpr:
		key, err := in.key(e.subs)
		if err != nil {
			return value{}, err
		}
		a, err := in.arrayOf(e.array)
		if err != nil {
			return value{}, err
		}
		_, ok := a.m[key]
		return boolean(ok), nil
	case *matchExpr:
		v, err := in.eval(e.e)
		if err != nil {
			return value{}, err
		}
		ok, err := in.matches(e.re, v.text(in.convfmt))
		return boolean(ok != e.negate), err
	case *callExpr:
		return in.call(e)
	case *indirectExpr:
		return in.indirect(e)
	case *builtinExpr:
		return in.builtin(e)
	case *getlineExpr:
		return in.getline(e)
	}
	return value{}, fmt.Errorf("unknown expression %T", e)
}

func (in *interp) variable(e *nameExpr) (value, error) {
	if !e.local {
		switch in.special[e.slot] {
		case svNR:
			return num(in.nr), nil
		case svFNR:
			return num(in.fnr), nil
		case svNF:
			n, err := in.rec.count()
			return num(float64(n)), err
		}
	}
	c := in.cell(e)
	if c.arr != nil {
		return value{}, fmt.Errorf("attempt to use array `%s' in a scalar context", e.name)
	}
	return c.v, nil
}

// matches reports whether e, a regex, matches text.
func (in *interp) matches(e expr, text string) (bool, error) {
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
func (in *interp) regexSource(e expr) (string, error) {
	if re, ok := e.(*regexExpr); ok {
		return re.src, nil
	}
	if g, ok := e.(*groupExpr); ok && len(g.list) == 1 {
		return in.regexSource(g.list[0])
	}
	v, err := in.eval(e)
	return v.text(in.convfmt), err
}

func (in *interp) assign(e *assignExpr) (value, error) {
	if e.op != "" && !isVariable(e.target) {
		target, err := in.pinned(e.target)
		if err != nil {
			return value{}, err
		}
		e = &assignExpr{e.op, target, e.value}
	}
	v, err := in.eval(e.value)
	if err != nil {
		return value{}, err
	}
	if e.op != "" {
		was, err := in.eval(e.target)
		if err != nil {
			return value{}, err
		}
		n, err := arithmetic(e.op, was.number(), v.number())
		if err != nil {
			return value{}, err
		}
		v = num(n)
	}
	return v, in.assignTo(e.target, v)
}

// assignTo sets what target names.
func (in *interp) assignTo(target expr, v value) error {
	switch t := target.(type) {
	case *nameExpr:
		if !t.local {
			return in.setSlot(t.slot, v)
		}
		c := in.frame[t.slot]
		if c.arr != nil {
			return fmt.Errorf("attempt to use array `%s' in a scalar context", t.name)
		}
		c.v = v
		return nil
	case *indexExpr:
		c, err := in.element(t)
		if err == nil && c.arr != nil {
			err = in.asScalar(t)
		}
		if err != nil {
			return err
		}
		in.size += int64(len(v.s) - len(c.v.s))
		c.v = v
		return nil
	case *fieldExpr:
		n, err := in.eval(t.index)
		if err != nil {
			return err
		}
		return in.rec.setField(n.number(), v)
	case *groupExpr:
		if len(t.list) == 1 {
			return in.assignTo(t.list[0], v)
		}
	}
	return errors.New("assignment to what is no variable")
}

// setSlot sets a global variable, and what follows from it.
func (in *interp) setSlot(slot int, v value) error {
	c := in.globals[slot]
	if c.arr != nil {
		return errors.New("attempt to use array in a scalar context")
	}
	c.v = v
	text := func() string { return v.text(in.convfmt) }
	switch in.special[slot] {
	case svNR:
		in.nr = v.number()
	case svFNR:
		in.fnr = v.number()
	case svNF:
		return in.rec.setCount(v.number())
	case svFS:
		return in.rec.setFS(text())
	case svFPAT:
		return in.rec.setFPAT(text())
	case svFIELDWIDTHS:
		return in.rec.setWidths(text())
	case svOFS:
		in.rec.text() // a record that is to be made anew is so with the old one
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
		in.ignoreCase = v.truth()
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

func (in *interp) binary(e *binExpr) (value, error) {
	l, err := in.eval(e.l)
	if err != nil {
		return value{}, err
	}
	switch e.op {
	case "&&", "||":
		if l.truth() == (e.op == "||") {
			return boolean(e.op == "||"), nil
		}
		ok, err := in.truth(e.r)
		return boolean(ok), err
	}
	r, err := in.eval(e.r)
	if err != nil {
		return value{}, err
	}
	switch e.op {
	case " ":
		s := l.text(in.convfmt) + r.text(in.convfmt)
		return str(s), in.limit(len(s))
	case "<":
		return boolean(in.compare(l, r) < 0), nil
	case "<=":
		return boolean(in.compare(l, r) <= 0 && !nan(l, r)), nil
	case ">":
		return boolean(in.compare(l, r) > 0), nil
	case ">=":
		return boolean(in.compare(l, r) >= 0 && !nan(l, r)), nil
	case "==":
		return boolean(in.compare(l, r) == 0 && !nan(l, r)), nil
	case "!=":
		return boolean(in.compare(l, r) != 0 || nan(l, r)), nil
	}
	n, err := arithmetic(e.op, l.number(), r.number())
	return num(n), err
}

func nan(l, r value) bool {
	return l.kind == vNumber && math.IsNaN(l.n) || r.kind == vNumber && math.IsNaN(r.n)
}

// compare compares as numbers when both are, and else as strings.
func (in *interp) compare(l, r value) int {
	a, ok := l.numeric()
	if b, ok2 := r.numeric(); ok && ok2 {
		switch {
		case a < b:
			return -1
		case a > b:
			return 1
		}
		return 0
	}
	s, t := l.text(in.convfmt), r.text(in.convfmt)
	if in.ignoreCase {
		s, t = strings.ToLower(s), strings.ToLower(t)
	}
	return strings.Compare(s, t)
}

func (in *interp) unary(e *unaryExpr) (value, error) {
	v, err := in.eval(e.e)
	if err != nil {
		return value{}, err
	}
	switch e.op {
	case "!":
		return boolean(!v.truth()), nil
	case "-":
		return num(-v.number()), nil
	}
	return num(v.number()), nil
}

package expand

import (
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"egressd/hermetic/internal/shell/chars"
	"egressd/hermetic/internal/shell/state"
	"egressd/hermetic/internal/shell/vars"
)

// found is the value of a parameter before its operator is applied.
type found struct {
	vals  []string
	list  bool // $@, $*, a[@], a[*]
	star  bool
	isSet bool
	name  string // the variable to assign to; "" if it is not one
	index string
	array bool // it has a subscript
	v     *vars.Variable
}

// first is the value, if it is not a list.
func (f *found) first() string {
	if len(f.vals) > 0 {
		return f.vals[0]
	}
	return ""
}

// param adds a parameter expansion.
func (e *expansion) param(p *syntax.ParamExp, quoted bool) {
	sh := e.sh
	if p.Param == nil || p.Flags != nil || p.Width || p.IsSet || len(p.Modifiers) > 0 {
		badSubst(sh, p)
	}
	if p.Excl {
		if e.indirect(p, quoted) {
			return
		}
	}
	f := find(sh, p)
	if p.Length {
		e.value(length(sh, p, f), quoted)
		return
	}
	switch {
	case p.Exp != nil && p.Exp.Op != syntax.OtherParamOps && defaultOp(sh, p.Exp.Op):
		if e.defaults(p, f, quoted) {
			return
		}
	default:
		mustBeSet(sh, p, f)
	}
	e.operate(p, f, quoted)
}

// operate applies the operator and adds the result.
func (e *expansion) operate(p *syntax.ParamExp, f *found, quoted bool) {
	sh := e.sh
	switch {
	case p.Slice != nil:
		slice(sh, p, f)
	case p.Repl != nil:
		replace(sh, p.Repl, f)
	case p.Exp != nil && !defaultOp(sh, p.Exp.Op):
		operator(sh, p, f)
	}
	if f.list {
		e.list(f.vals, f.star, quoted)
		return
	}
	e.value(f.first(), quoted)
}

// badSubst ends the shell because of an expansion that is not valid.
func badSubst(sh *state.Shell, p *syntax.ParamExp) {
	sh.Errorf("%s: bad substitution", sh.Source(p))
	panic(state.Ended{Status: 1})
}

// find looks up the parameter of an expansion.
func find(sh *state.Shell, p *syntax.ParamExp) *found {
	name := p.Param.Value
	if p.Index == nil {
		return findName(sh, name)
	}
	index := Subscript(sh, name, p.Index)
	return findElement(sh, name, index, isAll(sh, p.Index))
}

// isAll reports the subscripts @ and * without quotes.
func isAll(sh *state.Shell, x syntax.ArithmExpr) bool {
	w, ok := x.(*syntax.Word)
	if !ok {
		return false
	}
	lit := w.Lit()
	return lit == "@" || lit == "*"
}

// findElement looks up an element, or all of them.
func findElement(sh *state.Shell, name, index string, all bool) *found {
	if to := sh.Vars.Resolve(name); to != name {
		if base, _, ok := vars.SplitSubscript(to); ok {
			to = base
		}
		name = to
	}
	f := &found{name: name, index: index, array: true}
	f.v = sh.Vars.Lookup(name)
	if all {
		f.list, f.star = true, index == "*"
		if f.v != nil {
			f.vals = f.v.Values()
		}
		f.isSet = len(f.vals) > 0
		return f
	}
	var s string
	if f.v == nil {
		arithQuiet(sh, index)
		return f
	}
	if f.v.Kind == vars.Assoc && index == "" {
		sh.Discardf("%s: bad array subscript", name+"[]")
	}
	s, f.isSet = sh.Vars.Element(name, index)
	if f.isSet {
		f.vals = []string{s}
	}
	return f
}

// arithQuiet evaluates a subscript that can assign or step a variable, for that
// effect alone.
func arithQuiet(sh *state.Shell, index string) {
	if strings.ContainsAny(index, "=+-") {
		Arith(sh, index)
	}
}

// findName looks up a parameter without a subscript.
func findName(sh *state.Shell, name string) *found {
	f := &found{name: name}
	one := func(s string) *found {
		f.vals, f.isSet, f.name = []string{s}, true, ""
		return f
	}
	switch name {
	case "@", "*":
		f.vals, f.list, f.star, f.isSet, f.name = sh.Params.List, true, name == "*", len(sh.Params.List) > 0, ""
		return f
	case "#":
		return one(strconv.Itoa(len(sh.Params.List)))
	case "?":
		return one(strconv.Itoa(sh.Status))
	case "$":
		return one(strconv.Itoa(sh.Program.PID))
	case "-":
		return one(sh.Options.Letters())
	case "!":
		if sh.Jobs.Last == 0 {
			f.name = ""
			return f
		}
		return one(strconv.Itoa(sh.Jobs.Last))
	case "_":
		return one(sh.Params.Last)
	}
	if n, err := strconv.Atoi(name); err == nil {
		f.name = ""
		switch {
		case n == 0:
			return one(sh.Program.Arg0)
		case n <= len(sh.Params.List):
			return one(sh.Params.List[n-1])
		}
		return f
	}
	if to := sh.Vars.Resolve(name); to != name {
		if base, index, ok := vars.SplitSubscript(to); ok {
			return findElement(sh, base, index, index == "@" || index == "*")
		}
	}
	f.v = sh.Vars.Lookup(name)
	if f.v != nil {
		var s string
		if s, f.isSet = f.v.Scalar(); f.isSet {
			f.vals = []string{s}
		}
	}
	return f
}

// length is ${#x}.
func length(sh *state.Shell, p *syntax.ParamExp, f *found) string {
	if f.list {
		return strconv.Itoa(len(f.vals))
	}
	mustBeSet(sh, p, f)
	return strconv.Itoa(chars.Count(f.first()))
}

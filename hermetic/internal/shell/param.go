package shell

import (
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// found is what a parameter is before its operator works on it.
type found struct {
	vals  []string
	list  bool // $@, $*, a[@], a[*]
	star  bool
	isSet bool
	name  string // to assign to, "" when it cannot be
	index string
	array bool // index is there
	v     *variable
}

func (f *found) first() string {
	if len(f.vals) > 0 {
		return f.vals[0]
	}
	return ""
}

// param puts a parameter expansion in.
func (e *expansion) param(p *syntax.ParamExp, quoted bool) {
	sh := e.sh
	if p.Param == nil || p.Flags != nil || p.Width || p.IsSet || len(p.Modifiers) > 0 {
		sh.badSubst(p)
	}
	if p.Excl {
		if e.indirect(p, quoted) {
			return
		}
	}
	f := sh.find(p)
	if p.Length {
		e.value(sh.length(p, f), quoted)
		return
	}
	switch {
	case p.Exp != nil && p.Exp.Op != syntax.OtherParamOps && sh.defaultOp(p.Exp.Op):
		if e.defaults(p, f, quoted) {
			return
		}
	default:
		sh.mustBeSet(p, f)
	}
	e.operate(p, f, quoted)
}

// operate applies slices, replacements and the rest, and puts the result in.
func (e *expansion) operate(p *syntax.ParamExp, f *found, quoted bool) {
	sh := e.sh
	switch {
	case p.Slice != nil:
		sh.slice(p, f)
	case p.Repl != nil:
		sh.replace(p.Repl, f)
	case p.Exp != nil && !sh.defaultOp(p.Exp.Op):
		sh.operator(p, f)
	}
	if f.list {
		e.list(f.vals, f.star, quoted)
		return
	}
	e.value(f.first(), quoted)
}

func (sh *shell) badSubst(p *syntax.ParamExp) {
	sh.errorf("%s: bad substitution", sh.source(p))
	panic(ended{1})
}

func (sh *shell) defaultOp(op syntax.ParExpOperator) bool {
	switch op {
	case syntax.AlternateUnset, syntax.AlternateUnsetOrNull, syntax.DefaultUnset, syntax.DefaultUnsetOrNull,
		syntax.ErrorUnset, syntax.ErrorUnsetOrNull, syntax.AssignUnset, syntax.AssignUnsetOrNull:
		return true
	}
	return false
}

// mustBeSet is set -u.
func (sh *shell) mustBeSet(p *syntax.ParamExp, f *found) {
	if f.isSet || !sh.on(optNoUnset) || f.list && (p.Param.Value == "@" || p.Param.Value == "*" || f.array) {
		return
	}
	name := p.Param.Value
	if p.Index != nil {
		name += "[" + sh.source(p.Index) + "]"
	}
	if p.Excl {
		name = "!" + name
	}
	sh.errorf("%s: unbound variable", name)
	panic(ended{sh.fatalStatus()})
}

// find looks the parameter of an expansion up.
func (sh *shell) find(p *syntax.ParamExp) *found {
	name := p.Param.Value
	if p.Index == nil {
		return sh.findName(name)
	}
	index := sh.subscript(name, p.Index)
	return sh.findElement(name, index, sh.isAll(p.Index))
}

// isAll reports a subscript that is @ or *, not quoted.
func (sh *shell) isAll(x syntax.ArithmExpr) bool {
	w, ok := x.(*syntax.Word)
	if !ok {
		return false
	}
	lit := w.Lit()
	return lit == "@" || lit == "*"
}

func (sh *shell) findElement(name, index string, all bool) *found {
	if to := sh.resolve(name); to != name {
		if base, _, ok := splitSubscript(to); ok {
			to = base
		}
		name = to
	}
	f := &found{name: name, index: index, array: true}
	f.v = sh.lookup(name)
	if all {
		f.list, f.star = true, index == "*"
		if f.v != nil {
			f.vals = f.v.values()
		}
		f.isSet = len(f.vals) > 0
		return f
	}
	var s string
	if f.v == nil {
		sh.arithQuiet(index)
		return f
	}
	if f.v.kind == assocVar && index == "" {
		sh.discardf("%s: bad array subscript", name+"[]")
	}
	s, f.isSet = sh.element(name, index)
	if f.isSet {
		f.vals = []string{s}
	}
	return f
}

// arithQuiet evaluates for the side effects alone.
func (sh *shell) arithQuiet(index string) {
	if strings.ContainsAny(index, "=+-") {
		sh.arith(index)
	}
}

func (sh *shell) findName(name string) *found {
	f := &found{name: name}
	one := func(s string) *found {
		f.vals, f.isSet, f.name = []string{s}, true, ""
		return f
	}
	switch name {
	case "@", "*":
		f.vals, f.list, f.star, f.isSet, f.name = sh.params, true, name == "*", len(sh.params) > 0, ""
		return f
	case "#":
		return one(strconv.Itoa(len(sh.params)))
	case "?":
		return one(strconv.Itoa(sh.status))
	case "$":
		return one(strconv.Itoa(sh.run.pid))
	case "-":
		return one(sh.optLetters())
	case "!":
		if sh.lastJob == 0 {
			f.name = ""
			return f
		}
		return one(strconv.Itoa(sh.lastJob))
	case "_":
		return one(sh.lastArg)
	}
	if n, err := strconv.Atoi(name); err == nil {
		f.name = ""
		switch {
		case n == 0:
			return one(sh.run.arg0)
		case n <= len(sh.params):
			return one(sh.params[n-1])
		}
		return f
	}
	if to := sh.resolve(name); to != name {
		if base, index, ok := splitSubscript(to); ok {
			return sh.findElement(base, index, index == "@" || index == "*")
		}
	}
	f.v = sh.lookup(name)
	if f.v != nil {
		var s string
		if s, f.isSet = f.v.scalar(); f.isSet {
			f.vals = []string{s}
		}
	}
	return f
}

// length is ${#x}.
func (sh *shell) length(p *syntax.ParamExp, f *found) string {
	if f.list {
		return strconv.Itoa(len(f.vals))
	}
	sh.mustBeSet(p, f)
	return strconv.Itoa(charCount(f.first()))
}

// defaults works :- and its like; false: go on with the value.
func (e *expansion) defaults(p *syntax.ParamExp, f *found, quoted bool) bool {
	sh, op := e.sh, p.Exp.Op
	null := f.isSet && len(f.vals) <= 1 && f.first() == ""
	if f.list && len(f.vals) > 1 && f.star && strings.Join(f.vals, sh.starSeparator()) == "" {
		null = true
	}
	missing := !f.isSet
	switch op {
	case syntax.AlternateUnsetOrNull, syntax.DefaultUnsetOrNull, syntax.ErrorUnsetOrNull, syntax.AssignUnsetOrNull:
		missing = missing || null
	}
	switch op {
	case syntax.AlternateUnset, syntax.AlternateUnsetOrNull:
		if !missing {
			e.inner(p.Exp.Word, quoted)
		} else if quoted && !f.list {
			e.add("", true)
		}
		return true
	}
	if !missing {
		return false
	}
	switch op {
	case syntax.DefaultUnset, syntax.DefaultUnsetOrNull:
		e.inner(p.Exp.Word, quoted)
	case syntax.ErrorUnset, syntax.ErrorUnsetOrNull:
		text := sh.str(p.Exp.Word)
		if text == "" {
			if text = "parameter not set"; op == syntax.ErrorUnsetOrNull {
				text = "parameter null or not set"
			}
		}
		sh.errorf("%s: %s", p.Param.Value, text)
		panic(ended{sh.fatalStatus()})
	default:
		s := sh.assigned(p.Exp.Word)
		switch {
		case f.name == "":
			sh.errorf("$%s: cannot assign in this way", p.Param.Value)
			panic(ended{1})
		case f.array:
			sh.setElement(f.name, f.index, s, false)
		default:
			if !sh.setString(f.name, s) {
				panic(ended{1})
			}
			s = sh.get(f.name)
		}
		e.value(s, quoted)
	}
	return true
}

// inner puts the word of an operator in, with the quotes around it at work.
func (e *expansion) inner(w *syntax.Word, quoted bool) {
	if quoted {
		was := e.inQuote
		e.inQuote = true
		if w == nil || len(w.Parts) == 0 {
			e.add("", true)
		} else {
			for _, p := range w.Parts {
				e.innerPart(p)
			}
		}
		e.inQuote = was
		return
	}
	if w == nil {
		return
	}
	for i, p := range w.Parts {
		if lit, ok := p.(*syntax.Lit); ok {
			e.innerLit(lit.Value, i == 0, i == len(w.Parts)-1)
			continue
		}
		e.part(p, false)
	}
}

// innerPart is a part of such a word within double quotes: quotes inside it
// still quote there, but are no end.
func (e *expansion) innerPart(p syntax.WordPart) {
	if q, ok := p.(*syntax.DblQuoted); ok {
		for _, r := range q.Parts {
			e.part(r, true)
		}
		if len(q.Parts) == 0 {
			e.add("", true)
		}
		return
	}
	e.part(p, true)
}

// innerLit splits literal text at blanks, as the result of the expansion is.
func (e *expansion) innerLit(s string, first, last bool) {
	if !e.split || !strings.ContainsAny(s, e.ifs) {
		e.literal(s, first, last)
		return
	}
	start := 0
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\':
			i++
		case strings.IndexByte(e.ifs, s[i]) >= 0:
			e.literal(s[start:i], first && start == 0, true)
			e.value(s[i:i+1], false)
			start = i + 1
		}
	}
	e.literal(s[min(start, len(s)):], first && start == 0, last)
}

// fatalStatus is what a shell ends with when a parameter is missing.
func (sh *shell) fatalStatus() int {
	if sh.subshells > 0 || !sh.on(optCommand) {
		return 1
	}
	return 127
}

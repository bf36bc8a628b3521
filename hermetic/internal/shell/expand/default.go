package expand

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"egressd/hermetic/internal/shell/options"
	"egressd/hermetic/internal/shell/state"
)

// defaultOp reports the operators about parameters that are not set: :- := :?
// :+ and those without a colon.
func defaultOp(sh *state.Shell, op syntax.ParExpOperator) bool {
	switch op {
	case syntax.AlternateUnset, syntax.AlternateUnsetOrNull, syntax.DefaultUnset, syntax.DefaultUnsetOrNull,
		syntax.ErrorUnset, syntax.ErrorUnsetOrNull, syntax.AssignUnset, syntax.AssignUnsetOrNull:
		return true
	}
	return false
}

// mustBeSet is set -u: it ends the shell if the parameter is not set.
func mustBeSet(sh *state.Shell, p *syntax.ParamExp, f *found) {
	if f.isSet || !sh.Options.On(options.NoUnset) || f.list && (p.Param.Value == "@" || p.Param.Value == "*" || f.array) {
		return
	}
	name := p.Param.Value
	if p.Index != nil {
		name += "[" + sh.Source(p.Index) + "]"
	}
	if p.Excl {
		name = "!" + name
	}
	sh.Errorf("%s: unbound variable", name)
	panic(state.Ended{Status: fatalStatus(sh)})
}

// defaults applies :- and the other operators of defaultOp. It reports false if
// the value of the parameter is to be used.
func (e *expansion) defaults(p *syntax.ParamExp, f *found, quoted bool) bool {
	sh, op := e.sh, p.Exp.Op
	null := f.isSet && len(f.vals) <= 1 && f.first() == ""
	if f.list && len(f.vals) > 1 && f.star && strings.Join(f.vals, starSeparator(sh)) == "" {
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
		text := String(sh, p.Exp.Word)
		if text == "" {
			if text = "parameter not set"; op == syntax.ErrorUnsetOrNull {
				text = "parameter null or not set"
			}
		}
		sh.Errorf("%s: %s", p.Param.Value, text)
		panic(state.Ended{Status: fatalStatus(sh)})
	default:
		s := Value(sh, p.Exp.Word)
		switch {
		case f.name == "":
			sh.Errorf("$%s: cannot assign in this way", p.Param.Value)
			panic(state.Ended{Status: 1})
		case f.array:
			sh.Vars.SetElement(f.name, f.index, s, false)
		default:
			if !sh.Vars.Set(f.name, s) {
				panic(state.Ended{Status: 1})
			}
			s = sh.Vars.Get(f.name)
		}
		e.value(s, quoted)
	}
	return true
}

// inner adds the word of an operator; quotes around the expansion apply to it.
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

// innerPart adds a part of such a word within double quotes. Quotes inside it
// quote again; they do not end those around it.
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

// innerLit adds literal text, and splits it at IFS like the result of the
// expansion.
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

// fatalStatus is the exit status of a shell that ends because a parameter is
// not set.
func fatalStatus(sh *state.Shell) int {
	if sh.Subshells > 0 || !sh.Options.On(options.Command) {
		return 1
	}
	return 127
}

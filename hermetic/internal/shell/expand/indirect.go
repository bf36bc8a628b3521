package expand

import (
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"egressd/hermetic/internal/shell/state"
	"egressd/hermetic/internal/shell/vars"
)

// indirect adds ${!x}, ${!x*} and ${!x[@]}.
func (e *expansion) indirect(p *syntax.ParamExp, quoted bool) bool {
	sh, name := e.sh, p.Param.Value
	if p.Names != 0 {
		var out []string
		for _, n := range sh.Vars.Names() {
			if strings.HasPrefix(n, name) && sh.Vars.HasValue(n) {
				out = append(out, n)
			}
		}
		e.list(out, p.Names == syntax.NamesPrefix, quoted)
		return true
	}
	if p.Index != nil && isAll(sh, p.Index) && p.Exp == nil && p.Repl == nil && p.Slice == nil {
		v := sh.Vars.Lookup(sh.Vars.Resolve(name))
		var keys []string
		if v != nil {
			keys = v.Keys()
		}
		e.list(keys, p.Index.(*syntax.Word).Lit() == "*", quoted)
		return true
	}
	if v := sh.Vars.Raw(name); v != nil && v.Ref && p.Index == nil {
		e.value(v.Str, quoted)
		return true
	}
	q := *p
	q.Excl = false
	f := find(sh, &syntax.ParamExp{Param: p.Param, Index: p.Index})
	if !f.isSet {
		if p.Exp != nil && defaultOp(sh, p.Exp.Op) {
			if e.defaults(&q, &found{}, quoted) {
				return true
			}
		}
		if name == "@" || name == "*" {
			e.value("", quoted)
			return true
		}
		sh.Discardf("%s: invalid indirect expansion", name)
	}
	to := f.first()
	g := findText(sh, to)
	if g == nil {
		sh.Discardf("%s: invalid variable name", to)
	}
	q.Param = &syntax.Lit{Value: to}
	q.Index = nil
	if q.Exp != nil && defaultOp(sh, q.Exp.Op) {
		if e.defaults(&q, g, quoted) {
			return true
		}
	} else {
		mustBeSet(sh, &q, g)
	}
	e.operate(&q, g, quoted)
	return true
}

// findText looks up the parameter that a text names; nil if it is not a name.
func findText(sh *state.Shell, to string) *found {
	if base, index, ok := vars.SplitSubscript(to); ok {
		if v := sh.Vars.Lookup(base); v == nil || v.Kind != vars.Assoc {
			return findElement(sh, base, index, index == "@" || index == "*")
		}
		return findElement(sh, base, Text(sh, index), index == "@" || index == "*")
	}
	if vars.ValidName(to) || slices.Contains([]string{"@", "*", "#", "?", "$", "-", "!", "_"}, to) {
		return findName(sh, to)
	}
	if _, err := strconv.Atoi(to); err == nil {
		return findName(sh, to)
	}
	return nil
}

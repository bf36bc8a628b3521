package shell

import (
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// indirect is ${!x}, ${!x*} and ${!x[@]}; false: e was given the name to go on
// with, and p is done.
func (e *expansion) indirect(p *syntax.ParamExp, quoted bool) bool {
	sh, name := e.sh, p.Param.Value
	if p.Names != 0 {
		var out []string
		for _, n := range sh.names() {
			if strings.HasPrefix(n, name) && sh.hasValue(n) {
				out = append(out, n)
			}
		}
		e.list(out, p.Names == syntax.NamesPrefix, quoted)
		return true
	}
	if p.Index != nil && sh.isAll(p.Index) && p.Exp == nil && p.Repl == nil && p.Slice == nil {
		v := sh.lookup(sh.resolve(name))
		var keys []string
		if v != nil {
			keys = v.keys()
		}
		e.list(keys, p.Index.(*syntax.Word).Lit() == "*", quoted)
		return true
	}
	if v := sh.raw(name); v != nil && v.ref && p.Index == nil {
		e.value(v.str, quoted)
		return true
	}
	q := *p
	q.Excl = false
	f := sh.find(&syntax.ParamExp{Param: p.Param, Index: p.Index})
	if !f.isSet {
		if p.Exp != nil && sh.defaultOp(p.Exp.Op) {
			if e.defaults(&q, &found{}, quoted) {
				return true
			}
		}
		if name == "@" || name == "*" {
			e.value("", quoted)
			return true
		}
		sh.discardf("%s: invalid indirect expansion", name)
	}
	to := f.first()
	g := sh.findText(to)
	if g == nil {
		sh.discardf("%s: invalid variable name", to)
	}
	q.Param = &syntax.Lit{Value: to}
	q.Index = nil
	if q.Exp != nil && sh.defaultOp(q.Exp.Op) {
		if e.defaults(&q, g, quoted) {
			return true
		}
	} else {
		sh.mustBeSet(&q, g)
	}
	e.operate(&q, g, quoted)
	return true
}

// findText looks up what the text of a name means; nil: it is none.
func (sh *shell) findText(to string) *found {
	if base, index, ok := splitSubscript(to); ok {
		if v := sh.lookup(base); v == nil || v.kind != assocVar {
			return sh.findElement(base, index, index == "@" || index == "*")
		}
		return sh.findElement(base, sh.expandText(index), index == "@" || index == "*")
	}
	if validName(to) || slices.Contains([]string{"@", "*", "#", "?", "$", "-", "!", "_"}, to) {
		return sh.findName(to)
	}
	if _, err := strconv.Atoi(to); err == nil {
		return sh.findName(to)
	}
	return nil
}

func (sh *shell) hasValue(name string) bool {
	v := sh.lookup(name)
	return v != nil && (v.isSet || v.kind != plainVar)
}

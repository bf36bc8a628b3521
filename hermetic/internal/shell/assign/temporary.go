package assign

import (
	"mvdan.cc/sh/v3/syntax"

	"egressd/hermetic/internal/shell/expand"
	"egressd/hermetic/internal/shell/options"
	"egressd/hermetic/internal/shell/quote"
	"egressd/hermetic/internal/shell/state"
	"egressd/hermetic/internal/shell/vars"
)

// Temporary makes the assignments before a command, for that command alone. pop
// removes them; call it also if ok is false.
func Temporary(sh *state.Shell, assigns []*syntax.Assign) (pop func(), ok bool) {
	if len(assigns) == 0 {
		return func() {}, true
	}
	s := &vars.Scope{Vars: map[string]*vars.Variable{}, Prev: sh.Vars.Scope, Temp: true}
	var fresh []*vars.Variable
	var names []string
	for _, a := range assigns {
		name := sh.Vars.Resolve(a.Name.Value)
		if v := sh.Vars.Raw(name); v != nil && v.Readonly {
			sh.Errorf("%s: readonly variable", name)
			return func() {}, false
		}
		val := expand.Value(sh, a.Value)
		v := &vars.Variable{Exported: true}
		if old := sh.Vars.Raw(name); old != nil {
			v.Integer, v.Lower, v.Upper = old.Integer, old.Lower, old.Upper
		}
		if a.Append {
			val = sh.Vars.Shape(v, sh.Vars.Get(name), val, true)
		} else {
			val = sh.Vars.Shape(v, "", val, false)
		}
		if sh.Options.On(options.XTrace) {
			expand.Trace(sh, name+equals(a)+quote.IfNeeded(val))
		}
		v.Str, v.IsSet = val, true
		fresh, names = append(fresh, v), append(names, name)
		s.Vars[name] = v
		if len(fresh) == 1 {
			sh.Vars.Scope = s // the next assignment sees it
		}
	}
	for _, n := range names {
		sh.Changed(n)
	}
	return func() {
		for t := &sh.Vars.Scope; *t != nil; t = &(*t).Prev {
			if *t == s {
				*t = s.Prev
				break
			}
		}
	}, true
}

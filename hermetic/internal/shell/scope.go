package shell

import (
	"slices"
	"strings"
)

// scope is the variables of one function call, of the assignments before one
// command, or (at the bottom) of the shell.
type scope struct {
	vars map[string]*variable
	prev *scope
	temp bool // assignments before a command
	opts string
}

// cloneScope copies a chain for a subshell. Elements are shared until one side
// changes them.
func cloneScope(s *scope) *scope {
	if s == nil {
		return nil
	}
	c := &scope{vars: make(map[string]*variable, len(s.vars)+4), prev: cloneScope(s.prev), temp: s.temp}
	for k, v := range s.vars {
		if v.kind != plainVar {
			v.shared = true
		}
		w := *v
		c.vars[k] = &w
	}
	return c
}

// raw finds a name as it is, with no reference followed.
func (sh *shell) raw(name string) *variable {
	for s := sh.scope; s != nil; s = s.prev {
		if v := s.vars[name]; v != nil {
			return v
		}
	}
	return nil
}

// maxRefs bounds chains of declare -n.
const maxRefs = 8

// resolve follows declare -n; it may give "name[index]".
func (sh *shell) resolve(name string) string {
	for range maxRefs {
		v := sh.raw(name)
		if v == nil || !v.ref || v.str == "" {
			return name
		}
		if v.str == name {
			sh.errorf("warning: %s: circular name reference", name)
			return name
		}
		name = v.str
		if strings.IndexByte(name, '[') >= 0 {
			return name
		}
	}
	sh.errorf("warning: %s: circular name reference", name)
	return name
}

// lookup is the variable that name means, special ones included; nil when
// there is none.
func (sh *shell) lookup(name string) *variable {
	if v := sh.raw(name); v != nil {
		if !v.ref {
			return v
		}
		to := sh.resolve(name)
		if base, index, ok := splitSubscript(to); ok {
			s, isSet := sh.element(base, index)
			return &variable{str: s, isSet: isSet}
		}
		if to == name {
			return v
		}
		return sh.lookup(to)
	}
	return sh.special(name)
}

// get is the value of $name; "" when it is not set.
func (sh *shell) get(name string) string {
	if v := sh.lookup(name); v != nil {
		s, _ := v.scalar()
		return s
	}
	return ""
}

func (sh *shell) isSet(name string) bool {
	v := sh.lookup(name)
	if v == nil {
		return false
	}
	_, ok := v.scalar()
	return ok
}

// element is one element of an array, by the text of its subscript.
func (sh *shell) element(name, index string) (string, bool) {
	v := sh.lookup(name)
	if v == nil {
		return "", false
	}
	if v.kind == assocVar {
		s, ok := v.pairs.vals[index]
		return s, ok
	}
	at, ok := sh.indexOf(v, name, index)
	if !ok {
		return "", false
	}
	if v.kind == indexedVar {
		return v.list.get(at)
	}
	if at == 0 {
		return v.str, v.isSet
	}
	return "", false
}

// indexOf evaluates a subscript; negative ones count from the end.
func (sh *shell) indexOf(v *variable, name, index string) (int64, bool) {
	at := sh.arith(index)
	if at >= 0 {
		return at, true
	}
	next := int64(0)
	if v != nil {
		switch v.kind {
		case indexedVar:
			next = v.list.next()
		default:
			next = 1
		}
	}
	if at += next; at < 0 {
		sh.errorf("%s: bad array subscript", name)
		return 0, false
	}
	return at, true
}

// target is the variable to assign name to, made where bash makes it: where it
// is, or else at the bottom.
func (sh *shell) target(name string) *variable {
	var bottom *scope
	for s := sh.scope; s != nil; s = s.prev {
		if v := s.vars[name]; v != nil {
			return v
		}
		bottom = s
	}
	v := &variable{}
	if d := sh.special(name); d != nil {
		v.exported, v.readonly, v.integer = d.exported, d.readonly, d.integer
	}
	bottom.vars[name] = v
	return v
}

// local makes name a variable of the function that runs.
func (sh *shell) local(name string) *variable {
	s := sh.funcScope()
	if v := s.vars[name]; v != nil {
		return v
	}
	v := &variable{}
	for t := sh.scope; t != nil && t != s; t = t.prev {
		if w := t.vars[name]; w != nil && t.temp {
			*v = *w
			delete(t.vars, name)
		}
	}
	s.vars[name] = v
	return v
}

// funcScope is the scope of the function that runs, or the bottom.
func (sh *shell) funcScope() *scope {
	s := sh.scope
	for s.temp && s.prev != nil {
		s = s.prev
	}
	return s
}

// setString assigns to $name without a subscript, with its attributes at work.
func (sh *shell) setString(name, val string) bool {
	name = sh.resolve(name)
	if base, index, ok := splitSubscript(name); ok {
		return sh.setElement(base, index, val, false)
	}
	if sh.assignedSpecial(name, val) {
		return true
	}
	return sh.assignTo(sh.target(name), name, val, false)
}

// assignTo gives v a plain value.
func (sh *shell) assignTo(v *variable, name, val string, add bool) bool {
	if v.readonly {
		sh.errorf("%s: readonly variable", name)
		return false
	}
	old, _ := v.scalar()
	val = sh.shaped(v, old, val, add)
	sh.grow(int64(len(val)-len(old)), len(val))
	switch v.kind {
	case indexedVar:
		v.own()
		v.list.set(0, val)
	case assocVar:
		v.own()
		v.pairs.set("0", val)
	default:
		v.str = val
	}
	v.isSet = true
	if sh.on(optAllExport) {
		v.exported = true
	}
	sh.wasSet(name)
	return true
}

// shaped is val as the attributes of v make it.
func (sh *shell) shaped(v *variable, old, val string, add bool) string {
	if v.integer {
		n := sh.arith(val)
		if add {
			n += sh.arith(old)
		}
		return itoa(n)
	}
	if add {
		sh.checkLen(len(old) + len(val))
		val = old + val
	}
	switch {
	case v.lower:
		val = strings.ToLower(val)
	case v.upper:
		val = strings.ToUpper(val)
	case v.capital && val != "":
		val = strings.ToUpper(val[:1]) + strings.ToLower(val[1:])
	}
	return val
}

// setElement assigns name[index]=val; index is expanded and not yet evaluated.
func (sh *shell) setElement(name, index, val string, add bool) bool {
	name = sh.resolve(name)
	if base, _, ok := splitSubscript(name); ok {
		name = base
	}
	v := sh.target(name)
	return sh.setElementOf(v, name, index, val, add)
}

func (sh *shell) setElementOf(v *variable, name, index, val string, add bool) bool {
	if v.readonly {
		sh.errorf("%s: readonly variable", name)
		return false
	}
	if v.kind == assocVar {
		v.own()
		old := v.pairs.vals[index]
		val = sh.shaped(v, old, val, add)
		sh.grow(int64(len(val)-len(old)), len(val))
		sh.checkArray(len(v.pairs.vals) + 1)
		v.pairs.set(index, val)
		v.isSet = true
		return true
	}
	at, ok := sh.indexOf(v, name, index)
	if !ok {
		return false
	}
	sh.toIndexed(v)
	v.own()
	old, _ := v.list.get(at)
	val = sh.shaped(v, old, val, add)
	sh.grow(int64(len(val)-len(old)), len(val))
	sh.checkArray(len(v.list.elems) + 1)
	v.list.set(at, val)
	v.isSet = true
	return true
}

// toIndexed makes a plain variable an array of one.
func (sh *shell) toIndexed(v *variable) {
	if v.kind != plainVar {
		return
	}
	v.kind, v.list = indexedVar, &indexed{}
	if v.isSet {
		v.list.set(0, v.str)
	}
	v.str = ""
}

// setList makes name an array of vals.
func (sh *shell) setList(name string, vals []string) bool {
	name = sh.resolve(name)
	v := sh.target(name)
	if v.readonly {
		sh.errorf("%s: readonly variable", name)
		return false
	}
	sh.checkArray(len(vals))
	v.kind, v.list, v.pairs, v.str, v.isSet, v.shared = indexedVar, listOf(vals), nil, "", true, false
	sh.grow(v.size(), 0)
	return true
}

// unset takes a variable away.
func (sh *shell) unset(name string) bool {
	for s := sh.scope; s != nil; s = s.prev {
		v := s.vars[name]
		if v == nil {
			continue
		}
		if v.readonly {
			sh.errorf("unset: %s: cannot unset: readonly variable", name)
			return false
		}
		sh.grow(-v.size(), 0)
		if s == sh.funcScope() && s.prev != nil {
			s.vars[name] = &variable{}
		} else {
			delete(s.vars, name)
		}
		sh.wasUnset(name)
		return true
	}
	sh.wasUnset(name)
	return true
}

// names are all variables that are there, sorted.
func (sh *shell) names() []string {
	seen := map[string]bool{}
	for s := sh.scope; s != nil; s = s.prev {
		for k := range s.vars {
			seen[k] = true
		}
	}
	for _, k := range specialNames() {
		if !sh.plainNames[k] {
			seen[k] = true
		}
	}
	out := make([]string, 0, len(seen))
	for k := range seen {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// environ is what a command gets: exported variables and functions, each name
// once.
func (sh *shell) environ() []string {
	seen := map[string]*variable{}
	for s := sh.scope; s != nil; s = s.prev {
		for k, v := range s.vars {
			if seen[k] == nil {
				seen[k] = v
			}
		}
	}
	var out []string
	for k, v := range seen {
		if s, ok := v.scalar(); ok && v.exported && v.kind == plainVar {
			if v.ref {
				continue
			}
			out = append(out, k+"="+s)
		}
	}
	for name, f := range sh.funcs {
		if f.exported {
			out = append(out, "BASH_FUNC_"+name+"%%="+f.exportText())
		}
	}
	slices.Sort(out)
	return out
}

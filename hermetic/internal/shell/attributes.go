package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

func (sh *shell) declareOne(d *declaration, a *syntax.Assign) bool {
	name := a.Name.Value
	if !validName(name) {
		shown := name
		if a.Value != nil && d.who != "export" && d.who != "readonly" || a.Value != nil {
			shown += "=" + sh.str(a.Value)
		}
		sh.errorf("%s: `%s': not a valid identifier", d.who, shown)
		return false
	}
	isRef := strings.Contains(d.on, "n")
	if v := sh.raw(name); v != nil && v.ref && !isRef && !strings.Contains(d.off, "n") && !d.local {
		if name = sh.resolve(name); !validName(name) {
			base, index, _ := splitSubscript(name)
			name = base
			a = &syntax.Assign{Name: a.Name, Value: a.Value, Append: a.Append, Naked: a.Naked, Index: &syntax.Word{Parts: []syntax.WordPart{&syntax.Lit{Value: index}}}}
		}
	}
	val, hasVal := "", false
	if a.Value != nil {
		val, hasVal = sh.assigned(a.Value), true
	} else if !a.Naked && a.Array == nil {
		hasVal = true // declare x=
	}
	if g := sh.globalScope().vars[name]; d.local && g != nil && g.readonly && sh.raw(name) == g {
		sh.errorf("%s: %s: readonly variable", d.who, name)
		return false
	}
	v := sh.declareTarget(d, name)
	if v.readonly && (hasVal || a.Array != nil || strings.ContainsAny(d.off, "r")) {
		who := d.who + ": "
		if d.who != "declare" && d.who != "local" && d.who != "typeset" {
			who = ""
		}
		sh.errorf("%s%s: readonly variable", who, name)
		return false
	}
	if !sh.setAttributes(d, v, name) {
		return false
	}
	ok := true
	switch {
	case a.Array != nil:
		if v.kind == plainVar && strings.Contains(d.on, "A") {
			sh.toAssoc(v)
		}
		ok = sh.assignArray(v, name, a)
	case a.Index != nil && !hasVal:
		sh.toIndexed(v)
	case a.Index != nil:
		index := ""
		if v.kind == assocVar {
			index = sh.keyText(a.Index)
		} else {
			index = sh.arithText(a.Index)
		}
		ok = sh.setElementOf(v, name, index, val, a.Append)
	case hasVal && isRef:
		v.str, v.isSet = val, true
	case hasVal && (v.kind != plainVar) && strings.HasPrefix(val, "(") && strings.HasSuffix(val, ")"):
		ok = sh.assignText(v, name, val)
	case hasVal:
		if sh.assignedSpecial(name, val) {
			break
		}
		ok = sh.assignTo(v, name, val, a.Append)
	}
	if strings.Contains(d.on, "r") {
		v.readonly = true
	}
	return ok
}

// assignText is declare -a "x=(1 2)": the text is an array.
func (sh *shell) assignText(v *variable, name, val string) bool {
	script, _ := sh.parse("x=" + val)
	if len(script.Lines) != 1 || script.Mistake != nil {
		return sh.assignTo(v, name, val, false)
	}
	if c, ok := script.Lines[0][0].Cmd.(*syntax.CallExpr); ok && len(c.Assigns) == 1 && c.Assigns[0].Array != nil {
		return sh.assignArray(v, name, c.Assigns[0])
	}
	return sh.assignTo(v, name, val, false)
}

func (sh *shell) declareTarget(d *declaration, name string) *variable {
	switch {
	case d.local:
		s := sh.funcScope()
		if v := s.vars[name]; v != nil {
			return v
		}
		old := sh.raw(name)
		v := sh.local(name)
		if old != nil {
			v.exported = v.exported || old.exported
		}
		if old != nil && (d.inherit || sh.shopts["localvar_inherit"]) {
			*v = *old
			v.own()
		}
		return v
	case d.global:
		s := sh.globalScope()
		if s.vars[name] == nil {
			s.vars[name] = &variable{}
		}
		return s.vars[name]
	}
	v := sh.target(name)
	for s := sh.scope; s != nil; s = s.prev { // export x, with x=1 before it
		if s.temp && s.vars[name] == v && s.prev != nil {
			w := *v
			sh.globalScope().vars[name] = &w
			return &w
		}
	}
	return v
}

func (sh *shell) globalScope() *scope {
	s := sh.scope
	for s.prev != nil {
		s = s.prev
	}
	return s
}

func (sh *shell) toAssoc(v *variable) {
	if v.kind == plainVar {
		v.kind, v.pairs = assocVar, newAssoc()
		if v.isSet {
			v.pairs.set("0", v.str)
		}
		v.str = ""
	}
}

func (sh *shell) setAttributes(d *declaration, v *variable, name string) bool {
	for _, c := range d.on {
		switch c {
		case 'a':
			if v.kind == assocVar {
				sh.errorf("%s: %s: cannot convert associative to indexed array", d.who, name)
				return false
			}
			had := v.isSet
			sh.toIndexed(v)
			v.isSet = had
		case 'A':
			if v.kind == indexedVar {
				sh.errorf("%s: %s: cannot convert indexed to associative array", d.who, name)
				return false
			}
			sh.toAssoc(v)
		case 'i':
			v.integer = true
		case 'l':
			v.lower, v.upper = true, false
		case 'u':
			v.upper, v.lower = true, false
		case 'c':
			v.capital = true
		case 'n':
			v.ref = true
		case 't':
			v.trace = true
		case 'x':
			v.exported = true
		}
	}
	for _, c := range d.off {
		switch c {
		case 'a', 'A':
			sh.errorf("%s: %s: cannot destroy array variables in this way", d.who, name)
			return false
		case 'i':
			v.integer = false
		case 'l':
			v.lower = false
		case 'u':
			v.upper = false
		case 'c':
			v.capital = false
		case 'n':
			v.ref = false
		case 't':
			v.trace = false
		case 'x':
			v.exported = false
		}
	}
	return true
}

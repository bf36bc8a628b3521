package assign

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"egressd/hermetic/internal/shell/expand"
	"egressd/hermetic/internal/shell/state"
	"egressd/hermetic/internal/shell/vars"
)

// one declares one name: it finds or makes the variable, sets its attributes,
// then its value.
func (d *declaration) one(a *syntax.Assign) bool {
	sh := d.sh
	name := a.Name.Value
	if !vars.ValidName(name) {
		shown := name
		if a.Value != nil {
			shown += "=" + expand.String(sh, a.Value)
		}
		sh.Errorf("%s: `%s': not a valid identifier", d.who, shown)
		return false
	}
	if v := sh.Vars.Raw(name); v != nil && v.Ref && !d.adds("n") && !d.removes("n") && !d.local {
		if name = sh.Vars.Resolve(name); !vars.ValidName(name) {
			base, index, _ := vars.SplitSubscript(name)
			name = base
			a = &syntax.Assign{Name: a.Name, Value: a.Value, Append: a.Append, Naked: a.Naked, Index: &syntax.Word{Parts: []syntax.WordPart{&syntax.Lit{Value: index}}}}
		}
	}
	var val *string
	if a.Value != nil || !a.Naked && a.Array == nil { // declare x= is the empty text
		s := expand.Value(sh, a.Value)
		val = &s
	}
	if g := sh.Vars.Global().Vars[name]; d.local && g != nil && g.Readonly && sh.Vars.Raw(name) == g {
		sh.Errorf("%s: %s: readonly variable", d.who, name)
		return false
	}
	v := d.target(name)
	if v.Readonly && (val != nil || a.Array != nil || d.removes("r")) {
		who := d.who + ": "
		if d.who != "declare" && d.who != "local" && d.who != "typeset" {
			who = ""
		}
		sh.Errorf("%s%s: readonly variable", who, name)
		return false
	}
	if !d.attributes(v, name) {
		return false
	}
	ok := d.value(v, name, a, val)
	if d.adds("r") {
		v.Readonly = true
	}
	return ok
}

// value gives v the value of a declaration; val is that of name=value, nil if
// there is none.
func (d *declaration) value(v *vars.Variable, name string, a *syntax.Assign, val *string) bool {
	sh := d.sh
	switch {
	case a.Array != nil:
		if v.Kind == vars.Plain && d.adds("A") {
			v.ToAssoc()
		}
		return array(sh, v, name, a)
	case a.Index != nil && val == nil:
		v.ToIndexed()
	case a.Index != nil:
		index := ""
		if v.Kind == vars.Assoc {
			index = expand.KeyText(sh, a.Index)
		} else {
			index = expand.ArithText(sh, a.Index)
		}
		return sh.Vars.SetElementOf(v, name, index, *val, a.Append)
	case val == nil:
	case d.adds("n"):
		v.Str, v.IsSet = *val, true
	case v.Kind != vars.Plain && strings.HasPrefix(*val, "(") && strings.HasSuffix(*val, ")"):
		return assignText(sh, v, name, *val)
	case !sh.Vars.SetComputed(name, *val):
		return sh.Vars.Assign(v, name, *val, a.Append)
	}
	return true
}

// assignText is declare -a "x=(1 2)": the text is an array.
func assignText(sh *state.Shell, v *vars.Variable, name, val string) bool {
	script := sh.Parse("x=" + val)
	if len(script.Lines) != 1 || script.Mistake != nil {
		return sh.Vars.Assign(v, name, val, false)
	}
	if c, ok := script.Lines[0][0].Cmd.(*syntax.CallExpr); ok && len(c.Assigns) == 1 && c.Assigns[0].Array != nil {
		return array(sh, v, name, c.Assigns[0])
	}
	return sh.Vars.Assign(v, name, val, false)
}

// target is the variable to declare.
func (d *declaration) target(name string) *vars.Variable {
	sh := d.sh
	switch {
	case d.local:
		s := sh.Vars.Function()
		if v := s.Vars[name]; v != nil {
			return v
		}
		old := sh.Vars.Raw(name)
		v := sh.Vars.Local(name)
		if old != nil {
			v.Exported = v.Exported || old.Exported
		}
		if old != nil && (d.inherit || sh.Options.Shopt["localvar_inherit"]) {
			*v = *old
			v.Own()
		}
		return v
	case d.global:
		s := sh.Vars.Global()
		if s.Vars[name] == nil {
			s.Vars[name] = &vars.Variable{}
		}
		return s.Vars[name]
	}
	v := sh.Vars.Target(name)
	for s := sh.Vars.Scope; s != nil; s = s.Prev { // x=1 export x
		if s.Temp && s.Vars[name] == v && s.Prev != nil {
			w := *v
			sh.Vars.Global().Vars[name] = &w
			return &w
		}
	}
	return v
}

// attributes adds and removes attributes of v. It reports false after a
// message.
func (d *declaration) attributes(v *vars.Variable, name string) bool {
	sh := d.sh
	for _, c := range d.on {
		switch c {
		case 'a':
			if v.Kind == vars.Assoc {
				sh.Errorf("%s: %s: cannot convert associative to indexed array", d.who, name)
				return false
			}
			had := v.IsSet
			v.ToIndexed()
			v.IsSet = had
		case 'A':
			if v.Kind == vars.Indexed {
				sh.Errorf("%s: %s: cannot convert indexed to associative array", d.who, name)
				return false
			}
			v.ToAssoc()
		case 'i':
			v.Integer = true
		case 'l':
			v.Lower, v.Upper = true, false
		case 'u':
			v.Upper, v.Lower = true, false
		case 'c':
			v.Capital = true
		case 'n':
			v.Ref = true
		case 't':
			v.Trace = true
		case 'x':
			v.Exported = true
		}
	}
	for _, c := range d.off {
		switch c {
		case 'a', 'A':
			sh.Errorf("%s: %s: cannot destroy array variables in this way", d.who, name)
			return false
		case 'i':
			v.Integer = false
		case 'l':
			v.Lower = false
		case 'u':
			v.Upper = false
		case 'c':
			v.Capital = false
		case 'n':
			v.Ref = false
		case 't':
			v.Trace = false
		case 'x':
			v.Exported = false
		}
	}
	return true
}

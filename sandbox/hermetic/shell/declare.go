package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// declaration is what declare and its like were asked for.
type declaration struct {
	who                          string
	on, off                      string // attributes: letters of a A i l n r t u x c
	global, print, funcs, fnames bool
	local                        bool
	status                       int
	inherit                      bool
}

// declare runs declare, local, export, readonly and typeset as the parser knows
// them, with assignments that are not split.
func (sh *shell) declare(st *syntax.Stmt, c *syntax.DeclClause) {
	if !sh.beforeCommand() {
		return
	}
	name := c.Variant.Value
	if name == "nameref" || sh.funcs[name] != nil || !sh.builtinOn(name) {
		call := &syntax.CallExpr{Args: []*syntax.Word{{Parts: []syntax.WordPart{c.Variant}}}}
		for _, a := range c.Args {
			call.Args = append(call.Args, assignWord(a))
		}
		sh.simple(st, call)
		return
	}
	undo, ok := sh.redirect(st.Redirs)
	defer undo()
	if !ok {
		sh.status = 1
		return
	}
	sh.substEnded = -1
	d := &declaration{who: name}
	var rest []*syntax.Assign
	words := []string{name}
	options := true
	for _, a := range c.Args {
		if a.Name == nil || a.Naked && a.Index == nil && !validName(a.Name.Value) {
			var out []string
			if a.Name == nil {
				out = sh.fields([]*syntax.Word{a.Value})
			} else {
				out = []string{a.Name.Value}
			}
			for _, w := range out {
				words = append(words, w)
				switch {
				case options && w == "--":
					options = false
				case options && len(w) > 1 && (w[0] == '-' || w[0] == '+'):
					if !sh.declareFlags(d, w) {
						sh.status = 2
						return
					}
				default:
					options = false
					rest = append(rest, textAssign(w))
				}
			}
			continue
		}
		options = false
		rest = append(rest, a)
		if a.Naked {
			words = append(words, a.Name.Value)
		}
	}
	if sh.on(optXTrace) {
		sh.traceText(strings.TrimSpace(strings.Join(words, " ")))
	}
	sh.status = sh.declareAll(d, rest)
	sh.lastArg = words[len(words)-1]
}

// assignWord makes a word of what the parser took for an assignment.
func assignWord(a *syntax.Assign) *syntax.Word {
	w := &syntax.Word{}
	if a.Name != nil {
		text := a.Name.Value
		if !a.Naked {
			text += equals(a)
		}
		w.Parts = append(w.Parts, &syntax.Lit{Value: text})
	}
	if a.Value != nil {
		w.Parts = append(w.Parts, a.Value.Parts...)
	}
	return w
}

// textAssign reads "name=value" that came out of an expansion.
func textAssign(w string) *syntax.Assign {
	left, val, ok := strings.Cut(w, "=")
	a := &syntax.Assign{Naked: !ok}
	if ok && strings.HasSuffix(left, "+") {
		a.Append, left = true, strings.TrimSuffix(left, "+")
	}
	a.Name = &syntax.Lit{Value: left}
	if base, index, isIdx := splitSubscript(left); isIdx {
		a.Name = &syntax.Lit{Value: base}
		a.Index = &syntax.Word{Parts: []syntax.WordPart{&syntax.Lit{Value: index}}}
	}
	if ok {
		a.Value = &syntax.Word{Parts: []syntax.WordPart{&syntax.SglQuoted{Value: val}}}
	}
	return a
}

func (sh *shell) declareFlags(d *declaration, w string) bool {
	known := "aAfFgiIlnprtuxc"
	switch d.who {
	case "export":
		known = "fnp"
	case "readonly":
		known = "aAfp"
	}
	for _, c := range []byte(w[1:]) {
		if strings.IndexByte(known, c) < 0 {
			sh.errorf("%s: %c%c: invalid option", d.who, w[0], c)
			sh.errText(declareUsage(d.who))
			return false
		}
		switch c {
		case 'p':
			d.print = true
		case 'f':
			d.funcs = true
		case 'F':
			d.funcs, d.fnames = true, true
		case 'g':
			d.global = true
		case 'I':
			d.inherit = true
		default:
			switch {
			case d.who == "export" && c == 'n':
				d.off += "x"
			case w[0] == '-':
				d.on += string(c)
			default:
				d.off += string(c)
			}
		}
	}
	return true
}

func declareUsage(who string) string {
	switch who {
	case "export":
		return "export: usage: export [-fn] [name[=value] ...] or export -p\n"
	case "readonly":
		return "readonly: usage: readonly [-aAf] [name[=value] ...] or readonly -p\n"
	case "local":
		return "local: usage: local [option] name[=value] ...\n"
	}
	return who + ": usage: " + who + " [-aAfFgiIlnrtux] [name[=value] ...] or " + who + " -p [-aAfFilnrtux] [name ...]\n"
}

// builtinDeclare is the same by way of builtin and command, with words.
func builtinDeclare(sh *shell, args []string) int {
	d := &declaration{who: args[0]}
	i := 1
	for ; i < len(args) && len(args[i]) > 1 && (args[i][0] == '-' || args[i][0] == '+'); i++ {
		if args[i] == "--" {
			i++
			break
		}
		if !sh.declareFlags(d, args[i]) {
			return 2
		}
	}
	var rest []*syntax.Assign
	for _, w := range args[i:] {
		rest = append(rest, textAssign(w))
	}
	return sh.declareAll(d, rest)
}

func (sh *shell) inFunction() bool {
	for _, f := range sh.frames {
		if f.function {
			return true
		}
	}
	return false
}

func (sh *shell) declareAll(d *declaration, list []*syntax.Assign) int {
	switch d.who {
	case "local":
		if !sh.inFunction() {
			sh.errorf("local: can only be used in a function")
			return 1
		}
		d.local = true
	case "declare", "typeset":
		d.local = sh.inFunction() && !d.global
	case "export":
		if !strings.Contains(d.off, "x") {
			d.on += "x"
		}
	case "readonly":
		d.on += "r"
	}
	if d.funcs {
		return sh.declareFuncs(d, list)
	}
	if len(list) == 1 && list[0].Naked && list[0].Name.Value == "-" && d.who == "local" {
		sh.funcScope().opts = "saved"
		return 0
	}
	if d.print || len(list) == 0 {
		return sh.printDeclared(d, list)
	}
	for _, a := range list {
		if !sh.declareOne(d, a) {
			d.status = 1
		}
	}
	return d.status
}

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

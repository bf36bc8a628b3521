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

package assign

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"egressd/hermetic/internal/shell/expand"
	"egressd/hermetic/internal/shell/options"
	"egressd/hermetic/internal/shell/state"
	"egressd/hermetic/internal/shell/vars"
)

// declaration is one run of declare, local, export, readonly or typeset.
type declaration struct {
	sh      *state.Shell
	who     string // the name of the builtin
	on, off string // attributes: letters of a A i l n r t u x c
	global  bool   // -g
	local   bool
	inherit bool // -I
	print   bool // -p
	funcs   bool // -f
	fnames  bool // -F
	status  int
}

// adds and removes report an attribute by its letter.
func (d *declaration) adds(letter string) bool    { return strings.Contains(d.on, letter) }
func (d *declaration) removes(letter string) bool { return strings.Contains(d.off, letter) }

// Clause runs a declare clause, whose redirections have been made.
func Clause(sh *state.Shell, c *syntax.DeclClause) {
	name := c.Variant.Value
	sh.SubstStatus = -1
	d := &declaration{sh: sh, who: name}
	var rest []*syntax.Assign
	words := []string{name}
	reading := true
	for _, a := range c.Args {
		if a.Name == nil || a.Naked && a.Index == nil && !vars.ValidName(a.Name.Value) {
			var out []string
			if a.Name == nil {
				out = expand.Fields(sh, []*syntax.Word{a.Value})
			} else {
				out = []string{a.Name.Value}
			}
			for _, w := range out {
				words = append(words, w)
				switch {
				case reading && w == "--":
					reading = false
				case reading && len(w) > 1 && (w[0] == '-' || w[0] == '+'):
					if !d.readFlags(w) {
						sh.Status = 2
						return
					}
				default:
					reading = false
					rest = append(rest, textAssign(w))
				}
			}
			continue
		}
		reading = false
		rest = append(rest, a)
		if a.Naked {
			words = append(words, a.Name.Value)
		}
	}
	if sh.Options.On(options.XTrace) {
		expand.Trace(sh, strings.TrimSpace(strings.Join(words, " ")))
	}
	sh.Status = d.run(rest)
	sh.Params.Last = words[len(words)-1]
}

// Word turns an argument that was parsed as an assignment back into a word.
func Word(a *syntax.Assign) *syntax.Word {
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

// textAssign parses "name=value" that is the result of an expansion.
func textAssign(w string) *syntax.Assign {
	left, val, ok := strings.Cut(w, "=")
	a := &syntax.Assign{Naked: !ok}
	if ok && strings.HasSuffix(left, "+") {
		a.Append, left = true, strings.TrimSuffix(left, "+")
	}
	a.Name = &syntax.Lit{Value: left}
	if base, index, isIdx := vars.SplitSubscript(left); isIdx {
		a.Name = &syntax.Lit{Value: base}
		a.Index = &syntax.Word{Parts: []syntax.WordPart{&syntax.Lit{Value: index}}}
	}
	if ok {
		a.Value = &syntax.Word{Parts: []syntax.WordPart{&syntax.SglQuoted{Value: val}}}
	}
	return a
}

// readFlags reads one argument of options, such as -ax. It reports false after
// a message.
func (d *declaration) readFlags(w string) bool {
	sh := d.sh
	known := "aAfFgiIlnprtuxc"
	switch d.who {
	case "export":
		known = "fnp"
	case "readonly":
		known = "aAfp"
	}
	for _, c := range []byte(w[1:]) {
		if strings.IndexByte(known, c) < 0 {
			sh.Errorf("%s: %c%c: invalid option", d.who, w[0], c)
			sh.ErrText(declareUsage(d.who))
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

// declareUsage is the usage message of a builtin.
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

// Declare is the same builtins when they are called by builtin or command, with
// words for arguments.
func Declare(sh *state.Shell, args []string) int {
	d := &declaration{sh: sh, who: args[0]}
	i := 1
	for ; i < len(args) && len(args[i]) > 1 && (args[i][0] == '-' || args[i][0] == '+'); i++ {
		if args[i] == "--" {
			i++
			break
		}
		if !d.readFlags(args[i]) {
			return 2
		}
	}
	var rest []*syntax.Assign
	for _, w := range args[i:] {
		rest = append(rest, textAssign(w))
	}
	return d.run(rest)
}

// run declares the names of list, or prints them, and returns the exit status.
func (d *declaration) run(list []*syntax.Assign) int {
	sh := d.sh
	switch d.who {
	case "local":
		if !sh.InFunction() {
			sh.Errorf("local: can only be used in a function")
			return 1
		}
		d.local = true
	case "declare", "typeset":
		d.local = sh.InFunction() && !d.global
	case "export":
		if !strings.Contains(d.off, "x") {
			d.on += "x"
		}
	case "readonly":
		d.on += "r"
	}
	if d.funcs {
		return d.functions(list)
	}
	if len(list) == 1 && list[0].Naked && list[0].Name.Value == "-" && d.who == "local" {
		sh.Vars.Function().Opts = true
		return 0
	}
	if d.print || len(list) == 0 {
		return d.show(list)
	}
	for _, a := range list {
		if !d.one(a) {
			d.status = 1
		}
	}
	return d.status
}

// Declares reports the builtins whose arguments are assignments.
func Declares(name string) bool {
	switch name {
	case "declare", "typeset", "local", "export", "readonly":
		return true
	}
	return false
}

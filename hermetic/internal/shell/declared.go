package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

func (sh *shell) declareFuncs(d *declaration, list []*syntax.Assign) int {
	if len(list) == 0 {
		names := make([]string, 0, len(sh.funcs))
		for n := range sh.funcs {
			names = append(names, n)
		}
		slices.Sort(names)
		for _, n := range names {
			f := sh.funcs[n]
			if strings.Contains(d.on, "x") && !f.exported {
				continue
			}
			if d.fnames || d.who == "readonly" || d.who == "export" {
				if d.fnames {
					sh.outf("declare -f %s\n", n)
				}
				continue
			}
			sh.out(sh.functionText(f))
		}
		return 0
	}
	for _, a := range list {
		name := a.Name.Value
		f := sh.funcs[name]
		switch {
		case f == nil:
			if d.who != "declare" && d.who != "typeset" {
				sh.errorf("%s: %s: not a function", d.who, name)
			}
			d.status = 1
		case strings.Contains(d.on, "x"):
			f.exported = true
		case strings.Contains(d.off, "x"):
			f.exported = false
		case strings.Contains(d.on, "r"):
			f.readonly = true
		case strings.Contains(d.on, "t"):
			f.traced = true
		case d.fnames:
			sh.outf("%s\n", name)
		default:
			sh.out(sh.functionText(f))
		}
	}
	return d.status
}

// printDeclared is declare -p, export -p and the lists without names.
func (sh *shell) printDeclared(d *declaration, list []*syntax.Assign) int {
	for _, a := range list {
		v := sh.lookupRef(a.Name.Value)
		if v == nil {
			sh.errorf("%s: %s: not found", d.who, a.Name.Value)
			d.status = 1
			continue
		}
		sh.out(declareLine(a.Name.Value, v, "declare") + "\n")
	}
	if len(list) > 0 {
		return d.status
	}
	if !d.print && (d.who == "declare" || d.who == "typeset") && d.on == "" {
		sh.printVars()
		return 0
	}
	names := sh.names()
	if d.who == "local" {
		names = names[:0]
		for n := range sh.funcScope().vars {
			names = append(names, n)
		}
		slices.Sort(names)
	}
	for _, n := range names {
		v := sh.lookupRef(n)
		if v == nil || n == "_" {
			continue
		}
		match := true
		for _, c := range d.on {
			match = match && strings.ContainsRune(v.flags(), c)
		}
		switch {
		case !match:
		case d.who == "local" && !d.print:
			sh.out(n + "=" + valueText(v) + "\n")
		default:
			sh.out(declareLine(n, v, "declare") + "\n")
		}
	}
	return 0
}

// lookupRef is lookup, but a reference is itself.
func (sh *shell) lookupRef(name string) *variable {
	if v := sh.raw(name); v != nil {
		return v
	}
	return sh.special(name)
}

// declareLine is the command that makes a variable again.
func declareLine(name string, v *variable, cmd string) string {
	s := cmd + " -" + strings.TrimPrefix(v.flags(), "-")
	if v.flags() == "-" {
		s = cmd + " --"
	}
	s += " " + name
	if v.kind != plainVar {
		if !v.isSet && len(v.values()) == 0 {
			return s
		}
		return s + "=" + valueText(v)
	}
	if !v.isSet {
		return s
	}
	return s + "=" + quoteDouble(v.str)
}

// valueText is a value as set prints it.
func valueText(v *variable) string {
	switch v.kind {
	case indexedVar:
		parts := make([]string, len(v.list.elems))
		for i, e := range v.list.elems {
			parts[i] = "[" + itoa(e.at) + "]=" + quoteDouble(e.val)
		}
		return "(" + strings.Join(parts, " ") + ")"
	case assocVar:
		var b strings.Builder
		b.WriteByte('(')
		for _, k := range v.pairs.keys() {
			b.WriteString("[" + quoteKey(k) + "]=" + quoteDouble(v.pairs.vals[k]) + " ")
		}
		b.WriteByte(')')
		return b.String()
	}
	return quoteIfNeeded(v.str)
}

// printVars is set without arguments.
func (sh *shell) printVars() {
	for _, n := range sh.names() {
		v := sh.lookupRef(n)
		if v == nil || !v.isSet && v.kind == plainVar {
			continue
		}
		sh.out(n + "=" + valueText(v) + "\n")
	}
	if sh.run.posix || sh.on(optPosix) {
		return
	}
	names := make([]string, 0, len(sh.funcs))
	for n := range sh.funcs {
		names = append(names, n)
	}
	slices.Sort(names)
	for _, n := range names {
		sh.out(sh.functionText(sh.funcs[n]))
	}
}

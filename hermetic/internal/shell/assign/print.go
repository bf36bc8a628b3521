package assign

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"egressd/hermetic/internal/shell/options"
	"egressd/hermetic/internal/shell/state"
	"egressd/hermetic/internal/shell/vars"
)

// functions is declare -f and the options that go with it.
func (d *declaration) functions(list []*syntax.Assign) int {
	sh := d.sh
	if len(list) == 0 {
		names := make([]string, 0, len(sh.Commands.Funcs))
		for n := range sh.Commands.Funcs {
			names = append(names, n)
		}
		slices.Sort(names)
		for _, n := range names {
			f := sh.Commands.Funcs[n]
			if d.adds("x") && !f.Exported {
				continue
			}
			if d.fnames || d.who == "readonly" || d.who == "export" {
				if d.fnames {
					sh.Outf("declare -f %s\n", n)
				}
				continue
			}
			sh.Out(f.Source())
		}
		return 0
	}
	for _, a := range list {
		name := a.Name.Value
		f := sh.Commands.Funcs[name]
		switch {
		case f == nil:
			if d.who != "declare" && d.who != "typeset" {
				sh.Errorf("%s: %s: not a function", d.who, name)
			}
			d.status = 1
		case d.adds("x"):
			f.Exported = true
		case d.removes("x"):
			f.Exported = false
		case d.adds("r"):
			f.Readonly = true
		case d.adds("t"):
			f.Traced = true
		case d.fnames:
			sh.Outf("%s\n", name)
		default:
			sh.Out(f.Source())
		}
	}
	return d.status
}

// show is declare -p, export -p, and the builtins without names.
func (d *declaration) show(list []*syntax.Assign) int {
	sh := d.sh
	for _, a := range list {
		v := sh.Vars.LookupRef(a.Name.Value)
		if v == nil {
			sh.Errorf("%s: %s: not found", d.who, a.Name.Value)
			d.status = 1
			continue
		}
		sh.Out(vars.Declaration(a.Name.Value, v) + "\n")
	}
	if len(list) > 0 {
		return d.status
	}
	if !d.print && (d.who == "declare" || d.who == "typeset") && d.on == "" {
		PrintAll(sh)
		return 0
	}
	names := sh.Vars.Names()
	if d.who == "local" {
		names = names[:0]
		for n := range sh.Vars.Function().Vars {
			names = append(names, n)
		}
		slices.Sort(names)
	}
	for _, n := range names {
		v := sh.Vars.LookupRef(n)
		if v == nil || n == "_" {
			continue
		}
		match := true
		for _, c := range d.on {
			match = match && strings.ContainsRune(v.Flags(), c)
		}
		switch {
		case !match:
		case d.who == "local" && !d.print:
			sh.Out(n + "=" + vars.ValueText(v) + "\n")
		default:
			sh.Out(vars.Declaration(n, v) + "\n")
		}
	}
	return 0
}

// PrintAll is set without arguments.
func PrintAll(sh *state.Shell) {
	for _, n := range sh.Vars.Names() {
		v := sh.Vars.LookupRef(n)
		if v == nil || !v.IsSet && v.Kind == vars.Plain {
			continue
		}
		sh.Out(n + "=" + vars.ValueText(v) + "\n")
	}
	if sh.Program.Posix || sh.Options.On(options.Posix) {
		return
	}
	names := make([]string, 0, len(sh.Commands.Funcs))
	for n := range sh.Commands.Funcs {
		names = append(names, n)
	}
	slices.Sort(names)
	for _, n := range names {
		sh.Out(sh.Commands.Funcs[n].Source())
	}
}

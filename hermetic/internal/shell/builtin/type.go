package builtin

import (
	"strings"

	"egressd/hermetic/internal/shell/state"
)

// isKeyword reports the reserved words.
func isKeyword(s string) bool {
	switch s {
	case "if", "then", "else", "elif", "fi", "case", "esac", "for", "select", "while", "until", "do", "done", "in", "function",
		"time", "{", "}", "!", "[[", "]]", "coproc":
		return true
	}
	return false
}

// runType is the builtin type.
func runType(sh *state.Shell, args []string) int {
	var kind, all, paths, force, noFuncs bool
	args = args[1:]
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		a := args[0]
		args = args[1:]
		if a == "--" {
			break
		}
		for _, c := range a[1:] {
			switch c {
			case 't':
				kind = true
			case 'a':
				all = true
			case 'p':
				paths = true
			case 'P':
				force = true
			case 'f':
				noFuncs = true
			default:
				sh.Errorf("type: -%c: invalid option", c)
				sh.ErrText("type: usage: type [-afptP] name [name ...]\n")
				return 2
			}
		}
	}
	status := 0
	for _, name := range args {
		found := false
		say := func(k, text string) bool {
			found = true
			switch {
			case kind:
				sh.Out(k + "\n")
			case paths || force:
				if k == "file" {
					sh.Out(strings.TrimSuffix(text[strings.Index(text, "/"):], ")") + "\n")
				}
			default:
				sh.Out(text + "\n")
			}
			return all
		}
		describe(sh, name, force, noFuncs, say)
		if !found {
			if !kind && !paths && !force {
				sh.Errorf("type: %s: not found", name)
			}
			status = 1
		}
	}
	return status
}

// describe calls say with each meaning of name, in order, until say reports
// false.
func describe(sh *state.Shell, name string, force, noFuncs bool, say func(kind, text string) bool) {
	if !force {
		if a, ok := sh.Commands.Aliases[name]; ok && sh.Options.Shopt["expand_aliases"] {
			if !say("alias", name+" is aliased to `"+a+"'") {
				return
			}
		}
		if isKeyword(name) && !say("keyword", name+" is a shell keyword") {
			return
		}
		if f := sh.Commands.Funcs[name]; f != nil && !noFuncs {
			if !say("function", name+" is a function\n"+strings.TrimSuffix(f.Source(), "\n")) {
				return
			}
		}
		if On(sh, name) && !say("builtin", name+" is a shell builtin") {
			return
		}
	}
	if strings.IndexByte(name, '/') >= 0 {
		if info, err := sh.Session.FS.Stat(state.Join(sh.Dir.Path, name)); err == nil && info.Mode().IsRegular() && sh.Session.FS.Access(state.Join(sh.Dir.Path, name), 1) == nil {
			say("file", name+" is "+name)
		} else if what, why := sh.Session.At(sh.Dir.Path, name); why == "" && what.Script == "" {
			say("file", name+" is "+name)
		}
		return
	}
	if p, ok := sh.Commands.Hashed[name]; ok && !force {
		say("file", name+" is hashed ("+p+")")
		return
	}
	for _, d := range strings.Split(sh.Vars.Get("PATH"), ":") {
		if p, ok := sh.Session.LookPath(sh.Dir.Path, name, d); ok {
			if !say("file", name+" is "+p) {
				return
			}
		}
	}
}

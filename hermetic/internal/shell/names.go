package shell

import (
	"slices"
	"strings"
)

func isKeyword(s string) bool {
	switch s {
	case "if", "then", "else", "elif", "fi", "case", "esac", "for", "select", "while", "until", "do", "done", "in", "function",
		"time", "{", "}", "!", "[[", "]]", "coproc":
		return true
	}
	return false
}

// builtinType says what a name is.
func builtinType(sh *shell, args []string) int {
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
				sh.errorf("type: -%c: invalid option", c)
				sh.errText("type: usage: type [-afptP] name [name ...]\n")
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
				sh.out(k + "\n")
			case paths || force:
				if k == "file" {
					sh.out(strings.TrimSuffix(text[strings.Index(text, "/"):], ")") + "\n")
				}
			default:
				sh.out(text + "\n")
			}
			return all
		}
		sh.describe(name, force, noFuncs, say)
		if !found {
			if !kind && !paths && !force {
				sh.errorf("type: %s: not found", name)
			}
			status = 1
		}
	}
	return status
}

// describe calls say with what name is, in order, until it reports false.
func (sh *shell) describe(name string, force, noFuncs bool, say func(kind, text string) bool) {
	if !force {
		if a, ok := sh.aliases[name]; ok && sh.shopts["expand_aliases"] {
			if !say("alias", name+" is aliased to `"+a+"'") {
				return
			}
		}
		if isKeyword(name) && !say("keyword", name+" is a shell keyword") {
			return
		}
		if f := sh.funcs[name]; f != nil && !noFuncs {
			if !say("function", name+" is a function\n"+strings.TrimSuffix(sh.functionText(f), "\n")) {
				return
			}
		}
		if sh.builtinOn(name) && !say("builtin", name+" is a shell builtin") {
			return
		}
	}
	if strings.IndexByte(name, '/') >= 0 {
		if info, err := sh.ses.FS.Stat(join(sh.dir, name)); err == nil && info.Mode().IsRegular() && sh.ses.FS.Access(join(sh.dir, name), 1) == nil {
			say("file", name+" is "+name)
		} else if what, why := sh.ses.at(sh.dir, name); why == "" && what.script == "" {
			say("file", name+" is "+name)
		}
		return
	}
	if p, ok := sh.hashed[name]; ok && !force {
		say("file", name+" is hashed ("+p+")")
		return
	}
	for _, d := range strings.Split(sh.get("PATH"), ":") {
		if p, ok := sh.ses.lookPath(sh.dir, name, d); ok {
			if !say("file", name+" is "+p) {
				return
			}
		}
	}
}

// letters reads the options of a builtin that has only letters without values,
// and reports those that were given and the operands. Of a letter that is not
// known it tells as bash does, usage being what stands after the name.
func (sh *shell) letters(args []string, known, usage string) (given map[rune]bool, operands []string, ok bool) {
	given = map[rune]bool{}
	i := 1
	for ; i < len(args) && len(args[i]) > 1 && args[i][0] == '-'; i++ {
		if args[i] == "--" {
			i++
			break
		}
		for _, c := range args[i][1:] {
			if !strings.ContainsRune(known, c) {
				sh.errorf("%s: -%c: invalid option", args[0], c)
				sh.errText(args[0] + ": usage: " + args[0] + " " + usage + "\n")
				return nil, nil, false
			}
			given[c] = true
		}
	}
	return given, args[i:], true
}

func builtinCommand(sh *shell, args []string) int {
	given, args, ok := sh.letters(args, "vVp", "[-pVv] command [arg ...]")
	if !ok {
		return 2
	}
	verbose, short, std := given['V'], given['v'], given['p']
	if len(args) == 0 {
		return 0
	}
	if short || verbose {
		return sh.commandV(args, verbose)
	}
	if sh.builtinOn(args[0]) {
		if args[0] == "exec" {
			return sh.execArgs(args)
		}
		return sh.runBuiltin(args)
	}
	if std {
		if p, ok := sh.ses.lookPath(sh.dir, args[0], defaultPath); ok {
			return sh.runPath(p, args, append(sh.environ(), "_="+p))
		}
	}
	return sh.external(args)
}

func (sh *shell) commandV(args []string, verbose bool) int {
	status := 1
	for _, name := range args {
		found := false
		sh.describe(name, false, false, func(kind, text string) bool {
			found = true
			switch {
			case verbose:
				sh.out(text + "\n")
			case kind == "file":
				p := text[strings.Index(text, " is ")+4:]
				p = strings.TrimSuffix(strings.TrimPrefix(p, "hashed ("), ")")
				if strings.IndexByte(name, '/') >= 0 {
					p = name
				}
				sh.out(p + "\n")
			case kind == "alias":
				sh.out("alias " + name + "=" + quoteSingle(sh.aliases[name]) + "\n")
			default:
				sh.out(name + "\n")
			}
			return false
		})
		if found {
			status = 0
		} else if verbose {
			sh.errorf("command: %s: not found", name)
		}
	}
	return status
}

func builtinBuiltin(sh *shell, args []string) int {
	args = args[1:]
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		return 0
	}
	if builtin(args[0]) == nil {
		sh.errorf("builtin: %s: not a shell builtin", args[0])
		return 1
	}
	return sh.runBuiltin(args)
}

func builtinEnable(sh *shell, args []string) int {
	off, print := false, len(args) == 1
	i := 1
	for ; i < len(args) && len(args[i]) > 1 && args[i][0] == '-'; i++ {
		for _, c := range args[i][1:] {
			switch c {
			case 'n':
				off = true
			case 'a', 'p', 's':
				print = true
			default:
				sh.errorf("enable: -%c: dynamic loading not available", c)
				return 1
			}
		}
	}
	if i == len(args) || print {
		for _, n := range builtinNames() {
			if sh.disabled[n] == off {
				sh.out("enable " + map[bool]string{true: "-n ", false: ""}[off] + n + "\n")
			}
		}
		return 0
	}
	status := 0
	for _, n := range args[i:] {
		if builtin(n) == nil {
			sh.errorf("enable: %s: not a shell builtin", n)
			status = 1
			continue
		}
		if sh.disabled == nil {
			sh.disabled = map[string]bool{}
		}
		sh.disabled[n] = off
	}
	return status
}

func builtinHash(sh *shell, args []string) int {
	args = args[1:]
	if len(args) > 0 && args[0] == "-r" {
		clear(sh.hashed)
		args = args[1:]
		if len(args) == 0 {
			return 0
		}
	}
	if len(args) > 2 && args[0] == "-p" {
		sh.hashed[args[2]] = args[1]
		return 0
	}
	if len(args) > 1 && args[0] == "-t" {
		status := 0
		for _, n := range args[1:] {
			p, ok := sh.hashed[n]
			if !ok {
				sh.errorf("hash: %s: not found", n)
				status = 1
				continue
			}
			sh.out(p + "\n")
		}
		return status
	}
	if len(args) > 1 && args[0] == "-d" {
		for _, n := range args[1:] {
			delete(sh.hashed, n)
		}
		return 0
	}
	if len(args) == 0 {
		if len(sh.hashed) == 0 {
			sh.out("hash: hash table empty\n")
			return 0
		}
		sh.out("hits\tcommand\n")
		names := make([]string, 0, len(sh.hashed))
		for n := range sh.hashed {
			names = append(names, n)
		}
		slices.Sort(names)
		for _, n := range names {
			sh.out("   1\t" + sh.hashed[n] + "\n")
		}
		return 0
	}
	status := 0
	for _, n := range args {
		if sh.builtinOn(n) || sh.funcs[n] != nil || strings.IndexByte(n, '/') >= 0 {
			continue
		}
		delete(sh.hashed, n)
		if _, ok := sh.findCommand(n); !ok {
			sh.errorf("hash: %s: not found", n)
			status = 1
		}
	}
	return status
}

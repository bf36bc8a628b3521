package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
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

func builtinCommand(sh *shell, args []string) int {
	verbose, short, std := false, false, false
	i := 1
	for ; i < len(args) && len(args[i]) > 1 && args[i][0] == '-'; i++ {
		if args[i] == "--" {
			i++
			break
		}
		for _, c := range args[i][1:] {
			switch c {
			case 'v':
				short = true
			case 'V':
				verbose = true
			case 'p':
				std = true
			default:
				sh.errorf("command: -%c: invalid option", c)
				sh.errText("command: usage: command [-pVv] command [arg ...]\n")
				return 2
			}
		}
	}
	args = args[i:]
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

func builtinAlias(sh *shell, args []string) int {
	args = args[1:]
	if len(args) > 0 && args[0] == "-p" {
		args = args[1:]
	}
	if len(args) == 0 {
		names := make([]string, 0, len(sh.aliases))
		for n := range sh.aliases {
			names = append(names, n)
		}
		slices.Sort(names)
		for _, n := range names {
			sh.out("alias " + n + "=" + quoteSingle(sh.aliases[n]) + "\n")
		}
		return 0
	}
	status := 0
	for _, a := range args {
		name, val, ok := strings.Cut(a, "=")
		switch {
		case ok && name != "" && !strings.ContainsAny(name, " \t\n$`'\"\\/;&|<>()"):
			sh.aliases[name] = val
		case ok:
			sh.errorf("alias: `%s': invalid alias name", name)
			status = 1
		default:
			val, ok := sh.aliases[a]
			if !ok {
				sh.errorf("alias: %s: not found", a)
				status = 1
				continue
			}
			sh.out("alias " + a + "=" + quoteSingle(val) + "\n")
		}
	}
	return status
}

func builtinUnalias(sh *shell, args []string) int {
	if len(args) < 2 {
		sh.errText("unalias: usage: unalias [-a] name [name ...]\n")
		return 2
	}
	if args[1] == "-a" {
		clear(sh.aliases)
		return 0
	}
	status := 0
	for _, n := range args[1:] {
		if _, ok := sh.aliases[n]; !ok {
			sh.errorf("unalias: %s: not found", n)
			status = 1
		}
		delete(sh.aliases, n)
	}
	return status
}

// expandAlias runs a command whose first word is an alias: the text of the
// alias and of the rest is read anew. False: it is none.
func (sh *shell) expandAlias(st *syntax.Stmt, c *syntax.CallExpr) bool {
	if !sh.shopts["expand_aliases"] && !sh.run.posix || len(sh.aliases) == 0 {
		return false
	}
	name := c.Args[0].Lit()
	val, ok := sh.aliases[name]
	if !ok || sh.aliasing[name] {
		return false
	}
	from, to := int(c.Args[0].Pos().Offset()), int(st.End().Offset())
	if sh.unit == nil || to > len(sh.unit.text) || from >= to {
		return false
	}
	start := int(st.Pos().Offset())
	rest := sh.unit.text[from+len(name) : to]
	rest = strings.TrimRight(rest, "; \n")
	if st.Background {
		rest = strings.TrimSuffix(rest, "&")
	}
	text := sh.unit.text[start:from] + val
	if strings.HasSuffix(val, " ") || strings.HasSuffix(val, "\t") {
		rest = sh.aliasNext(rest)
	}
	text += rest
	script, _ := sh.parse(text)
	if script.Mistake != nil || len(script.Lines) == 0 {
		if m := script.Mistake; m != nil {
			sh.syntaxError(m, true)
		}
		return true
	}
	old := sh.unit
	sh.unit = &unit{name: old.name, text: script.Text, base: sh.line - 1}
	if sh.aliasing == nil {
		sh.aliasing = map[string]bool{}
	}
	sh.aliasing[name] = true
	defer func() {
		sh.unit = old
		delete(sh.aliasing, name)
	}()
	for _, l := range script.Lines {
		sh.stmts(l)
	}
	return true
}

// aliasNext expands the word after an alias that ends in a blank.
func (sh *shell) aliasNext(rest string) string {
	trimmed := strings.TrimLeft(rest, " \t")
	end := strings.IndexAny(trimmed, " \t\n;|&<>()")
	if end < 0 {
		end = len(trimmed)
	}
	if val, ok := sh.aliases[trimmed[:end]]; ok && !sh.aliasing[trimmed[:end]] {
		return " " + val + trimmed[end:]
	}
	return rest
}

// execBuiltin is exec: with words it is the end of this shell, without it makes
// redirections last.
func (sh *shell) execBuiltin(st *syntax.Stmt, c *syntax.CallExpr, args []string) {
	sh.traceArgs(c, args)
	if len(args) == 1 {
		sh.status = 0
		if !sh.redirectForGood(st.Redirs) {
			sh.status = 1
			if !sh.shopts["execfail"] {
				sh.flow = exits
			}
		}
		for _, a := range c.Assigns {
			sh.assign(a)
		}
		return
	}
	undo, ok := sh.redirect(st.Redirs)
	defer undo()
	if !ok {
		sh.status, sh.flow = 1, exits
		return
	}
	pop, ok := sh.tempAssign(c.Assigns, "exec")
	defer pop()
	if !ok {
		sh.status = 1
		return
	}
	sh.status = sh.execArgs(args)
}

func (sh *shell) execArgs(args []string) int {
	args = args[1:]
	env, arg0 := sh.environ(), ""
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		a := args[0]
		args = args[1:]
		if a == "--" {
			break
		}
		switch {
		case a == "-a" && len(args) > 0:
			arg0, args = args[0], args[1:]
		case strings.Trim(a[1:], "cl") == "":
			if strings.Contains(a, "c") {
				env = nil
			}
		default:
			sh.errorf("exec: %s: invalid option", a)
			sh.errText("exec: usage: exec [-cl] [-a name] [command [argument ...]] [redirection ...]\n")
			return 2
		}
	}
	if len(args) == 0 {
		return 0
	}
	path := args[0]
	if strings.IndexByte(path, '/') < 0 {
		p, ok := sh.findCommand(path)
		if !ok {
			sh.errorf("exec: %s: not found", path)
			if !sh.shopts["execfail"] {
				sh.flow = exits
			}
			return 127
		}
		path = p
	}
	if arg0 != "" {
		args = append([]string{arg0}, args[1:]...)
	}
	delete(sh.traps, "EXIT")
	status := sh.runPath(path, args, append(env, "_="+path))
	sh.flow = exits
	return status
}

func builtinCompgen(sh *shell, args []string) int {
	var out []string
	prefix := ""
	args = args[1:]
	for len(args) > 0 {
		a := args[0]
		args = args[1:]
		switch a {
		case "-W":
			if len(args) > 0 {
				out = append(out, strings.Fields(sh.expandText(args[0]))...)
				args = args[1:]
			}
		case "-v":
			out = append(out, sh.names()...)
		case "-A":
			if len(args) > 0 {
				out = append(out, sh.generated(args[0])...)
				args = args[1:]
			}
		case "-b", "-k", "-a", "-c", "-f", "-d", "-e":
			out = append(out, sh.generated(map[string]string{
				"-b": "builtin", "-k": "keyword", "-a": "alias", "-c": "command", "-f": "file", "-d": "directory", "-e": "export",
			}[a])...)
		case "--":
		default:
			prefix = a
		}
	}
	status := 1
	for _, n := range out {
		if strings.HasPrefix(n, prefix) {
			sh.out(n + "\n")
			status = 0
		}
	}
	return status
}

func (sh *shell) generated(what string) (out []string) {
	switch what {
	case "function":
		for n := range sh.funcs {
			out = append(out, n)
		}
	case "builtin":
		return builtinNames()
	case "alias":
		for n := range sh.aliases {
			out = append(out, n)
		}
	case "variable":
		return sh.names()
	case "export":
		for _, kv := range sh.environ() {
			n, _, _ := strings.Cut(kv, "=")
			out = append(out, n)
		}
	case "keyword":
		return []string{"if", "then", "else", "elif", "fi", "case", "esac", "for", "select", "while", "until", "do", "done", "in", "function", "time", "{", "}", "!", "[[", "]]", "coproc"}
	case "file", "directory":
		entries, _ := sh.ses.FS.ReadDir(sh.dir)
		for _, e := range entries {
			if what == "file" || e.IsDir() {
				out = append(out, e.Name())
			}
		}
	case "command":
		for n := range sh.ses.table {
			out = append(out, n)
		}
		out = append(out, builtinNames()...)
	}
	slices.Sort(out)
	return out
}

package shell

import (
	"maps"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

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
	if len(sh.aliasView) == 0 {
		return false
	}
	name := c.Args[0].Lit()
	val, ok := sh.aliasView[name]
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

// seeAliases takes the aliases that the next line is read with: what a line
// itself defines is for later ones.
func (sh *shell) seeAliases() {
	sh.aliasView = nil
	if len(sh.aliases) > 0 && (sh.shopts["expand_aliases"] || sh.run.posix) {
		sh.aliasView = maps.Clone(sh.aliases)
	}
}

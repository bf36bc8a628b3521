package shell

import (
	"maps"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"egressd/hermetic/internal/shell/state"
)

// expandAlias runs a command whose first word is an alias: it parses the text
// of the alias and of the rest of the command again. It reports false if the
// word is not an alias.
func expandAlias(sh *state.Shell, st *syntax.Stmt, c *syntax.CallExpr) bool {
	if len(sh.Commands.AliasView) == 0 {
		return false
	}
	name := c.Args[0].Lit()
	val, ok := sh.Commands.AliasView[name]
	if !ok || sh.Commands.Expanding[name] {
		return false
	}
	from, to := int(c.Args[0].Pos().Offset()), int(st.End().Offset())
	if sh.Unit == nil || to > len(sh.Unit.Text) || from >= to {
		return false
	}
	start := int(st.Pos().Offset())
	rest := sh.Unit.Text[from+len(name) : to]
	rest = strings.TrimRight(rest, "; \n")
	if st.Background {
		rest = strings.TrimSuffix(rest, "&")
	}
	text := sh.Unit.Text[start:from] + val
	if strings.HasSuffix(val, " ") || strings.HasSuffix(val, "\t") {
		rest = aliasNext(sh, rest)
	}
	text += rest
	script := sh.Parse(text)
	if script.Mistake != nil || len(script.Lines) == 0 {
		if m := script.Mistake; m != nil {
			syntaxError(sh, m, true)
		}
		return true
	}
	old := sh.Unit
	sh.Unit = &state.Unit{Name: old.Name, Text: script.Text, Base: sh.Line - 1}
	if sh.Commands.Expanding == nil {
		sh.Commands.Expanding = map[string]bool{}
	}
	sh.Commands.Expanding[name] = true
	defer func() {
		sh.Unit = old
		delete(sh.Commands.Expanding, name)
	}()
	for _, l := range script.Lines {
		stmts(sh, l)
	}
	return true
}

// aliasNext expands the word after an alias whose text ends in a blank.
func aliasNext(sh *state.Shell, rest string) string {
	trimmed := strings.TrimLeft(rest, " \t")
	end := strings.IndexAny(trimmed, " \t\n;|&<>()")
	if end < 0 {
		end = len(trimmed)
	}
	if val, ok := sh.Commands.Aliases[trimmed[:end]]; ok && !sh.Commands.Expanding[trimmed[:end]] {
		return " " + val + trimmed[end:]
	}
	return rest
}

// seeAliases keeps the aliases that the next line is read with: an alias takes
// effect on the line after its definition.
func seeAliases(sh *state.Shell) {
	sh.Commands.AliasView = nil
	if len(sh.Commands.Aliases) > 0 && (sh.Options.Shopt["expand_aliases"] || sh.Program.Posix) {
		sh.Commands.AliasView = maps.Clone(sh.Commands.Aliases)
	}
}

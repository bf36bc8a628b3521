package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"egressd/hermetic/internal/shell/layout"
)

// functionText is a function as declare -f prints it.
func (sh *shell) functionText(f *function) string {
	return layout.Function(f.name, f.body, f.unit.text)
}

// exportText is a function in an environment.
func (f *function) exportText() string {
	text := layout.Function(f.name, f.body, f.unit.text)
	_, body, _ := strings.Cut(text, "\n")
	return "() " + strings.TrimSuffix(body, "\n")
}

// importFunction defines a function that a parent exported.
func (sh *shell) importFunction(name, text string) {
	if !strings.HasPrefix(text, "() {") {
		return
	}
	script, _ := sh.parse("function " + name + " " + text)
	if script.Mistake != nil || len(script.Lines) != 1 || len(script.Lines[0]) != 1 {
		return
	}
	if c, ok := script.Lines[0][0].Cmd.(*syntax.FuncDecl); ok && c.Name != nil {
		sh.funcs[name] = &function{name: name, body: c.Body, unit: &unit{name: commandUnit, text: script.Text}, exported: true}
	}
}

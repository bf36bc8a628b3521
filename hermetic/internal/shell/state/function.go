package state

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"egressd/hermetic/internal/shell/layout"
)

// Function is a function that a script defined.
type Function struct {
	Name     string
	Body     *syntax.Stmt
	Unit     *Unit
	Exported bool
	Traced   bool
	Readonly bool
}

// Source is the definition as declare -f prints it.
func (f *Function) Source() string { return layout.Function(f.Name, f.Body, f.Unit.Text) }

// exportText is the function as a variable of the environment.
func (f *Function) exportText() string {
	_, body, _ := strings.Cut(f.Source(), "\n")
	return "() " + strings.TrimSuffix(body, "\n")
}

// importFunction defines a function that a parent exported.
func (sh *Shell) importFunction(name, text string) {
	if !strings.HasPrefix(text, "() {") {
		return
	}
	script := sh.Parse("function " + name + " " + text)
	if script.Mistake != nil || len(script.Lines) != 1 || len(script.Lines[0]) != 1 {
		return
	}
	if c, ok := script.Lines[0][0].Cmd.(*syntax.FuncDecl); ok && c.Name != nil {
		sh.Commands.Funcs[name] = &Function{Name: name, Body: c.Body, Unit: &Unit{Name: CommandUnit, Text: script.Text}, Exported: true}
	}
}

// Environ is the environment of a command: exported variables and functions,
// sorted.
func (sh *Shell) Environ() []string {
	out := sh.Vars.Environ()
	for name, f := range sh.Commands.Funcs {
		if f.Exported {
			out = append(out, "BASH_FUNC_"+name+"%%="+f.exportText())
		}
	}
	slices.Sort(out)
	return out
}

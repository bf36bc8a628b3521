package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"egressd/hermetic/internal/shell/jobs"
	"egressd/hermetic/internal/shell/options"
	"egressd/hermetic/internal/shell/scan"
	"egressd/hermetic/internal/shell/state"
)

// sourceText runs a file in this shell, as source does.
func sourceText(sh *state.Shell, name, text string, params []string) {
	sh.Deeper()
	old, line := sh.Params.List, sh.Line
	if len(params) > 0 {
		sh.Params.List, sh.Params.Given = params, false
	}
	sh.Frames = append(sh.Frames, state.Frame{Name: "source", Source: name, CallLine: sh.Line})
	defer func() {
		sh.Frames = sh.Frames[:len(sh.Frames)-1]
		if len(params) > 0 && !sh.Params.Given { // parameters that set gave stay
			sh.Params.List = old
		}
		sh.Line = line
		sh.Work.Calls--
	}()
	sh.Status = 0
	runText(sh, text, name)
	if sh.Flow == state.Returns {
		sh.Flow = state.GoesOn
	}
	if sh.Flow == state.GoesOn {
		jobs.RunTrap(sh, "RETURN")
	}
}

// runText parses and runs a script. As in bash, the lines before a mistake run.
func runText(sh *state.Shell, text, name string) {
	text = strings.ReplaceAll(text, "\x00", "")
	script := sh.Parse(text)
	u := &state.Unit{Name: name, Text: script.Text}
	old := sh.Unit
	sh.Unit = u
	defer func() { sh.Unit = old }()
	runScript(sh, script, name == state.CommandUnit)
}

// runScript runs the lines of a script. A line that ends early does not end the
// script.
func runScript(sh *state.Shell, script *scan.Script, isCommand bool) {
	for _, group := range script.Lines {
		if sh.Options.On(options.Verbose) {
			sh.ErrText(script.TextOf(group) + "\n")
		}
		seeAliases(sh)
		runLine(sh, group)
		if sh.Flow != state.GoesOn {
			if sh.Flow == state.Breaks || sh.Flow == state.Continues {
				sh.Flow = state.GoesOn
				continue
			}
			return
		}
	}
	for _, w := range script.Warnings {
		sh.Line = w.Line + sh.UnitBase()
		sh.Errorf("warning: %s", w.Text)
	}
	if m := script.Mistake; m != nil {
		syntaxError(sh, m, isCommand)
	}
}

// runLine runs the statements of one line.
func runLine(sh *state.Shell, group []*syntax.Stmt) {
	defer func() {
		if x := recover(); x != nil {
			d, ok := x.(state.Discard)
			if !ok {
				panic(x)
			}
			sh.Status = d.Status
			sh.NoErrExit, sh.Work.Tree = 0, 0
			if sh.Options.On(options.ErrExit) || len(sh.Frames) > 0 {
				panic(x)
			}
		}
	}()
	stmts(sh, group)
}

// syntaxError reports a mistake as bash does, and ends the shell with status 2.
func syntaxError(sh *state.Shell, m *scan.Mistake, isCommand bool) {
	name := sh.ScriptName()
	if isCommand && len(sh.Frames) == 0 {
		name += ": -c"
	}
	for _, l := range m.Say(name, sh.UnitBase()) {
		sh.ErrText(l + "\n")
	}
	sh.Status = 2
	if len(sh.Frames) == 0 {
		sh.Flow = state.Exits
	}
}

// evalText runs text in this shell, as eval and traps do.
func evalText(sh *state.Shell, text string) {
	sh.Deeper()
	defer func() { sh.Work.Calls-- }()
	script := sh.Parse(text)
	old, line := sh.Unit, sh.Line
	name := ""
	if old != nil {
		name = old.Name
	}
	sh.Unit = &state.Unit{Name: name, Text: script.Text, Base: line - 1}
	defer func() { sh.Unit, sh.Line = old, line }()
	if len(script.Lines) == 0 {
		sh.Status = 0
	}
	for _, group := range script.Lines {
		seeAliases(sh)
		stmts(sh, group)
		if sh.Flow != state.GoesOn {
			return
		}
	}
	for _, w := range script.Warnings {
		sh.Errorf("warning: %s", w.Text)
	}
	if m := script.Mistake; m != nil {
		for _, l := range m.Say(sh.Program.Arg0+": eval", line-1) {
			sh.ErrText(l + "\n")
		}
		sh.Status = 2
		if sh.Program.Posix {
			sh.Flow = state.Exits
		}
	}
}

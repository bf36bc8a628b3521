package shell

import (
	"mvdan.cc/sh/v3/syntax"

	"egressd/hermetic/internal/shell/expand"
	"egressd/hermetic/internal/shell/jobs"
	"egressd/hermetic/internal/shell/state"
)

// interpreter is state.Interpreter for the packages below.
type interpreter struct{}

var _ state.Interpreter = interpreter{}

func (interpreter) CommandSubst(sh *state.Shell, c *syntax.CmdSubst) string { return cmdSubst(sh, c) }

func (interpreter) ProcessSubst(sh *state.Shell, p *syntax.ProcSubst) string {
	return procSubst(sh, p)
}
func (interpreter) Arith(sh *state.Shell, text string) int64    { return expand.Arith(sh, text) }
func (interpreter) EvalText(sh *state.Shell, text string)       { evalText(sh, text) }
func (interpreter) External(sh *state.Shell, args []string) int { return external(sh, args) }
func (interpreter) Exec(sh *state.Shell, args []string) int     { return execArgs(sh, args) }
func (interpreter) RunPending(sh *state.Shell)                  { jobs.RunPending(sh) }

func (interpreter) SourceText(sh *state.Shell, name, text string, params []string) {
	sourceText(sh, name, text, params)
}

func (interpreter) RunPath(sh *state.Shell, path string, args, env []string) int {
	return runPath(sh, path, args, env)
}

package shell

import (
	"mvdan.cc/sh/v3/syntax"

	"egressd/hermetic/internal/shell/jobs"
	"egressd/hermetic/internal/shell/options"
	"egressd/hermetic/internal/shell/redirect"
	"egressd/hermetic/internal/shell/state"
)

// stmts runs statements until one leaves.
func stmts(sh *state.Shell, list []*syntax.Stmt) {
	for _, st := range list {
		stmt(sh, st)
		if sh.Flow != state.GoesOn {
			return
		}
	}
}

// stmt runs one statement.
func stmt(sh *state.Shell, st *syntax.Stmt) {
	sh.Check()
	if sh.Options.On(options.NoExec) {
		return
	}
	if line := st.Pos().Line(); line > 0 {
		sh.Line = int(line) + sh.UnitBase() + sh.LineShift
	}
	if st.Background {
		background(sh, st)
		return
	}
	if st.Coprocess || st.Disown {
		sh.Discardf("syntax error near unexpected token `&'")
	}
	if st.Negated {
		sh.NoErrExit++
		runCommand(sh, st)
		sh.NoErrExit--
		if sh.Flow == state.GoesOn {
			sh.Status = negate(sh.Status)
		}
		return
	}
	runCommand(sh, st)
	if sh.Status != 0 && sh.Flow == state.GoesOn && failsShell(sh, st.Cmd) {
		failed(sh, st)
	}
}

// negate is the status of ! command.
func negate(status int) int {
	if status == 0 {
		return 1
	}
	return 0
}

// failsShell reports whether a failure of cmd counts for set -e and the ERR
// trap. Lists have checked their members already.
func failsShell(sh *state.Shell, cmd syntax.Command) bool {
	if sh.NoErrExit > 0 {
		return false
	}
	switch c := cmd.(type) {
	case *syntax.BinaryCmd:
		return c.Op == syntax.Pipe || c.Op == syntax.PipeAll
	case *syntax.Block, *syntax.IfClause, *syntax.WhileClause, *syntax.ForClause, *syntax.CaseClause:
		return sh.RedirFailed
	}
	return true
}

// failed runs the ERR trap and applies set -e.
func failed(sh *state.Shell, st *syntax.Stmt) {
	jobs.RunTrap(sh, "ERR")
	if sh.Options.On(options.ErrExit) && sh.Flow == state.GoesOn {
		sh.Flow = state.Exits
	}
}

// runCommand runs a command with its redirections.
func runCommand(sh *state.Shell, st *syntax.Stmt) {
	mark := len(sh.FDs.Substituted)
	sh.RedirFailed = false
	sh.Current = st
	switch c := st.Cmd.(type) {
	case *syntax.CallExpr:
		simple(sh, st, c)
	case *syntax.DeclClause:
		declare(sh, st, c)
	case *syntax.FuncDecl:
		define(sh, c)
	default:
		undo, ok := redirect.Apply(sh, st.Redirs)
		if !ok {
			undo()
			sh.Status, sh.RedirFailed = 1, true
			break
		}
		func() {
			defer undo()
			if st.Cmd == nil {
				sh.Status = 0
			} else {
				compound(sh, st.Cmd)
			}
		}()
	}
	sh.DropSubstituted(mark)
	if sh.Flow == state.GoesOn && !keepsPipeStatus(st.Cmd) {
		sh.PipeStatus = []int{sh.Status}
	}
}

// keepsPipeStatus reports the commands whose members set PIPESTATUS.
func keepsPipeStatus(cmd syntax.Command) bool {
	switch cmd.(type) {
	case *syntax.BinaryCmd, *syntax.Block, *syntax.IfClause, *syntax.WhileClause, *syntax.ForClause, *syntax.CaseClause, *syntax.TimeClause:
		return true
	}
	return false
}

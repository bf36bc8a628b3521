package jobs

import (
	"egressd/hermetic/internal/shell/options"
	"egressd/hermetic/internal/shell/proc"
	"egressd/hermetic/internal/shell/state"
)

// note keeps a signal until the current command has ended.
func note(sh *state.Shell, sig string) {
	if sh.Traps.Pending == nil {
		sh.Traps.Pending = map[string]bool{}
	}
	sh.Traps.Pending[sig] = true
}

// RunPending runs the traps of signals that came.
func RunPending(sh *state.Shell) {
	sh.Proc.Signalled.Store(false)
	for more := true; more; {
		select {
		case sig := <-sh.Proc.Pending:
			note(sh, sig)
		default:
			more = false
		}
	}
	for n := 1; n <= 64 && len(sh.Traps.Pending) > 0; n++ {
		name := proc.SignalName(n)
		if name != "" && sh.Traps.Pending[name] {
			delete(sh.Traps.Pending, name)
			RunTrap(sh, name)
			if sh.Flow == state.Exits {
				panic(state.Ended{Status: sh.Status})
			}
		}
	}
}

// RunTrap runs the action of a trap. It keeps $?, unless the action leaves the
// shell.
func RunTrap(sh *state.Shell, name string) {
	action, ok := sh.Traps.Actions[name]
	if !ok || action == "" || sh.Traps.Inherited && !(name == "ERR" && sh.Options.On(options.ErrTrace)) && !(name == "DEBUG" && sh.Options.On(options.FuncTrace)) {
		return
	}
	if name == "ERR" || name == "DEBUG" || name == "RETURN" {
		if sh.Traps.Running > 0 {
			return
		}
		sh.Traps.Running++
		defer func() { sh.Traps.Running-- }()
	}
	status, pipes, line, trapped := sh.Status, sh.PipeStatus, sh.Line, sh.Trapped
	sh.Trapped = sh.CommandText()
	sh.EvalText(action)
	sh.Trapped = trapped
	if sh.Flow == state.GoesOn {
		sh.Status = status
	}
	sh.PipeStatus, sh.Line = pipes, line
}

// RunDebug runs the DEBUG trap. It reports false if the next command is to be
// skipped: with extdebug, if the trap fails.
func RunDebug(sh *state.Shell) bool {
	if sh.Traps.Running > 0 {
		return true
	}
	sh.Traps.Running++
	status, pipes, line := sh.Status, sh.PipeStatus, sh.Line
	current, trapped := sh.Current, sh.Trapped
	sh.Trapped = sh.CommandText()
	sh.EvalText(sh.Traps.Actions["DEBUG"])
	sh.Trapped = trapped
	sh.Traps.Running--
	trapStatus := sh.Status
	if sh.Flow == state.GoesOn {
		sh.Status = status
	}
	sh.PipeStatus, sh.Line, sh.Current = pipes, line, current
	return !sh.Options.Shopt["extdebug"] || trapStatus == 0
}

// RunExit runs the EXIT trap, at the end of a shell.
func RunExit(sh *state.Shell) {
	action, ok := sh.Traps.Actions["EXIT"]
	if !ok || sh.Traps.Inherited || sh.Ctx.Err() != nil {
		return
	}
	delete(sh.Traps.Actions, "EXIT")
	if action == "" {
		return
	}
	status := sh.Status
	sh.Flow, sh.NoErrExit, sh.Loops = state.GoesOn, 0, 0
	sh.Options.Flags &^= options.ErrExit
	sh.EvalText(action)
	if sh.Flow != state.Exits {
		sh.Status = status
	}
}

package shell

import (
	"fmt"

	"egressd/hermetic/internal/shell/jobs"
	"egressd/hermetic/internal/shell/state"
)

// subshell runs do in sh until it ends, then its EXIT trap, and releases sh.
// Flow and panics end here. It returns the exit status.
func subshell(sh *state.Shell, do func()) (status int) {
	defer sh.Release()
	runToEnd(sh, do)
	return sh.Status
}

// runToEnd runs do, then the EXIT trap. Nothing leaves it but the status.
func runToEnd(sh *state.Shell, do func()) {
	guard(sh, do)
	guard(sh, func() { jobs.RunExit(sh) })
	if n := sh.Proc.Killed.Load(); n > 0 {
		sh.Status = 128 + int(n)
	}
	if sh.Session.Budget.Cause() != nil {
		sh.Status = 126
	}
	sh.Status &= 255
}

// guard runs do and recovers the panics that end a shell.
func guard(sh *state.Shell, do func()) {
	defer func() {
		switch x := recover().(type) {
		case nil:
		case state.Ended:
			sh.Status, sh.Flow = x.Status, state.Exits
		case state.Discard:
			sh.Status = x.Status
		default:
			sh.ErrText(fmt.Sprintf("%sa bug ended this shell: %v\n", sh.Prefix(), x))
			sh.Status, sh.Flow = 125, state.Exits
		}
	}()
	do()
}

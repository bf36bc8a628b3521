package state

import (
	"egressd/hermetic/limits"
)

// Discard is the value of a panic that ends the commands up to the next line of
// the script. Package shell recovers it.
type Discard struct{ Status int }

// Ended is the value of a panic that ends the shell. Package shell recovers it;
// neither leaves Run.
type Ended struct{ Status int }

// Exceed ends the session because a limit is exceeded.
func (sh *Shell) Exceed(e *limits.Exceeded) {
	sh.Session.Budget.Exceed(e)
	panic(Ended{Status: 126})
}

// Check ends the shell if its context has ended, and runs the traps of signals
// that came.
func (sh *Shell) Check() {
	if sh.Ctx.Err() != nil {
		panic(Ended{Status: sh.Proc.EndStatus()})
	}
	if sh.Proc.Signalled.Load() {
		sh.RunPending()
	}
}

// Deeper counts one more level of calls, and ends the session if that is too
// many. The caller counts Work.Calls down again.
func (sh *Shell) Deeper() {
	sh.Work.Calls++
	if most := sh.Session.Budget.Limits.Calls; int64(sh.Work.Calls) > most {
		sh.Exceed(&limits.Exceeded{Name: "calls", Limit: most, What: "functions, substitutions and scripts ran inside each other"})
	}
}

// Discardf writes a message and ends the commands of this line with status 1.
func (sh *Shell) Discardf(format string, args ...any) {
	sh.Errorf(format, args...)
	panic(Discard{Status: 1})
}

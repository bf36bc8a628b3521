package builtin

import (
	"slices"
	"strconv"

	"egressd/hermetic/internal/shell/expand"
	"egressd/hermetic/internal/shell/number"
	"egressd/hermetic/internal/shell/state"
)

// runShift is the builtin shift.
func runShift(sh *state.Shell, args []string) int {
	n := 1
	if len(args) > 1 {
		m, err := strconv.Atoi(args[1])
		if err != nil {
			sh.Errorf("shift: %s: numeric argument required", args[1])
			return 1
		}
		if len(args) > 2 {
			sh.Errorf("shift: too many arguments")
			return 1
		}
		n = m
	}
	if n < 0 {
		sh.Errorf("shift: %s: shift count out of range", args[1])
		return 1
	}
	if n > len(sh.Params.List) {
		if sh.Options.Shopt["shift_verbose"] {
			sh.Errorf("shift: %d: shift count out of range", n)
		}
		return 1
	}
	sh.Params.List = slices.Clone(sh.Params.List[n:])
	return 0
}

// runExit is the builtin exit.
func runExit(sh *state.Shell, args []string) int {
	status, ok := leaveStatus(sh, args)
	if !ok {
		return status
	}
	sh.Flow = state.Exits
	return status
}

// leaveStatus reads the argument of exit and return; false if they do not
// leave.
func leaveStatus(sh *state.Shell, args []string) (int, bool) {
	if len(args) > 1 && args[1] == "--" {
		args = append(args[:1:1], args[2:]...)
	}
	if len(args) < 2 {
		return sh.Status, true
	}
	n, ok := number.Parse(args[1])
	if !ok {
		sh.Errorf("%s: %s: numeric argument required", args[0], args[1])
		return 2, true
	}
	if len(args) > 2 {
		sh.Errorf("%s: too many arguments", args[0])
		return 1, false
	}
	return int(n & 255), true
}

// runReturn is the builtin return.
func runReturn(sh *state.Shell, args []string) int {
	if len(sh.Frames) == 0 {
		sh.Errorf("return: can only `return' from a function or sourced script")
		return 2
	}
	status, ok := leaveStatus(sh, args)
	if ok {
		sh.Flow = state.Returns
	}
	return status
}

// runBreak is the builtins break and continue.
func runBreak(sh *state.Shell, args []string) int {
	n := int64(1)
	if len(args) > 1 {
		m, ok := number.Parse(args[1])
		if !ok {
			sh.Errorf("%s: %s: numeric argument required", args[0], args[1])
			sh.Flow = state.Exits
			return 128
		}
		if len(args) > 2 {
			sh.Errorf("%s: too many arguments", args[0])
			panic(state.Discard{Status: 1})
		}
		n = m
	}
	if sh.Loops == 0 {
		sh.Errorf("%s: only meaningful in a `for', `while', or `until' loop", args[0])
		return 0
	}
	if n <= 0 {
		sh.Errorf("%s: %s: loop count out of range", args[0], args[1])
		sh.Flow, sh.Levels = state.Breaks, sh.Loops
		return 1
	}
	sh.Flow, sh.Levels = state.Breaks, int(min(n, int64(sh.Loops)))
	if args[0] == "continue" {
		sh.Flow = state.Continues
	}
	return 0
}

// runLet is the builtin let.
func runLet(sh *state.Shell, args []string) int {
	if len(args) < 2 {
		sh.Errorf("let: expression expected")
		return 1
	}
	n := int64(0)
	for _, a := range args[1:] {
		var ok bool
		if n, ok = expand.TryArith(sh, "let: ", a); !ok {
			return 1
		}
	}
	if n == 0 {
		return 1
	}
	return 0
}

package jobs

import (
	"slices"
	"strconv"

	"egressd/hermetic/internal/shell/proc"
	"egressd/hermetic/internal/shell/quote"
	"egressd/hermetic/internal/shell/state"
)

// Trap is the builtin trap.
func Trap(sh *state.Shell, args []string) int {
	args = args[1:]
	if len(args) > 0 && args[0] == "-l" {
		return Kill(sh, []string{"kill", "-l"})
	}
	print := false
	if len(args) > 0 && args[0] == "-p" {
		print, args = true, args[1:]
	}
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		sh.Errorf("trap: %s: invalid option", args[0])
		sh.ErrText("trap: usage: trap [-lp] [[arg] signal_spec ...]\n")
		return 2
	}
	if len(args) == 0 || print {
		return printTraps(sh, args)
	}
	action, names := args[0], args[1:]
	reset := action == "-"
	if len(args) == 1 {
		if proc.TrapName(action) == "" {
			sh.ErrText(sh.Prefix() + "trap: usage: trap [-lp] [[arg] signal_spec ...]\n")
			return 2
		}
		reset, names = true, args
	} else if _, err := strconv.Atoi(action); err == nil && proc.TrapName(action) != "" {
		reset, names = true, args
	}
	if sh.Traps.Inherited {
		ownTraps(sh)
	}
	status := 0
	for _, s := range names {
		name := proc.TrapName(s)
		switch {
		case name == "":
			sh.Errorf("trap: %s: invalid signal specification", s)
			status = 1
		case reset:
			delete(sh.Traps.Actions, name)
		default:
			sh.Traps.Actions[name] = action
		}
	}
	sh.PublishTraps()
	return status
}

// ownTraps drops the traps of the parent, except ignored signals.
func ownTraps(sh *state.Shell) {
	for name, action := range sh.Traps.Actions {
		if action != "" {
			delete(sh.Traps.Actions, name)
		}
	}
	sh.Traps.Inherited = false
}

// printTraps is trap -p.
func printTraps(sh *state.Shell, which []string) int {
	status := 0
	var names []string
	for _, w := range which {
		n := proc.TrapName(w)
		if n == "" {
			sh.Errorf("trap: %s: invalid signal specification", w)
			status = 1
			continue
		}
		names = append(names, n)
	}
	if len(which) == 0 {
		for n := 0; n <= 64; n++ {
			if s := proc.SignalName(n); s != "" {
				names = append(names, s)
			}
		}
		names = append(names, "DEBUG", "ERR", "RETURN")
	}
	for _, n := range names {
		action, ok := sh.Traps.Actions[n]
		if !ok {
			continue
		}
		show := n
		if !slices.Contains([]string{"EXIT", "ERR", "DEBUG", "RETURN"}, n) {
			show = "SIG" + n
		}
		sh.Outf("trap -- %s %s\n", quote.Single(action), show)
	}
	return status
}

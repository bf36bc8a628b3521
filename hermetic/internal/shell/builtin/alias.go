package builtin

import (
	"slices"
	"strings"

	"egressd/hermetic/internal/shell/quote"
	"egressd/hermetic/internal/shell/state"
)

// runAlias is the builtin alias.
func runAlias(sh *state.Shell, args []string) int {
	args = args[1:]
	if len(args) > 0 && args[0] == "-p" {
		args = args[1:]
	}
	if len(args) == 0 {
		names := make([]string, 0, len(sh.Commands.Aliases))
		for n := range sh.Commands.Aliases {
			names = append(names, n)
		}
		slices.Sort(names)
		for _, n := range names {
			sh.Out("alias " + n + "=" + quote.Single(sh.Commands.Aliases[n]) + "\n")
		}
		return 0
	}
	status := 0
	for _, a := range args {
		name, val, ok := strings.Cut(a, "=")
		switch {
		case ok && name != "" && !strings.ContainsAny(name, " \t\n$`'\"\\/;&|<>()"):
			sh.Commands.Aliases[name] = val
		case ok:
			sh.Errorf("alias: `%s': invalid alias name", name)
			status = 1
		default:
			val, ok := sh.Commands.Aliases[a]
			if !ok {
				sh.Errorf("alias: %s: not found", a)
				status = 1
				continue
			}
			sh.Out("alias " + a + "=" + quote.Single(val) + "\n")
		}
	}
	return status
}

// runUnalias is the builtin unalias.
func runUnalias(sh *state.Shell, args []string) int {
	if len(args) < 2 {
		sh.ErrText("unalias: usage: unalias [-a] name [name ...]\n")
		return 2
	}
	if args[1] == "-a" {
		clear(sh.Commands.Aliases)
		return 0
	}
	status := 0
	for _, n := range args[1:] {
		if _, ok := sh.Commands.Aliases[n]; !ok {
			sh.Errorf("unalias: %s: not found", n)
			status = 1
		}
		delete(sh.Commands.Aliases, n)
	}
	return status
}

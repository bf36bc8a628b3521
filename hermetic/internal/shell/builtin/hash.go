package builtin

import (
	"slices"
	"strings"

	"egressd/hermetic/internal/shell/state"
)

// runHash is the builtin hash.
func runHash(sh *state.Shell, args []string) int {
	args = args[1:]
	if len(args) > 0 && args[0] == "-r" {
		clear(sh.Commands.Hashed)
		args = args[1:]
		if len(args) == 0 {
			return 0
		}
	}
	if len(args) > 2 && args[0] == "-p" {
		sh.Commands.Hashed[args[2]] = args[1]
		return 0
	}
	if len(args) > 1 && args[0] == "-t" {
		status := 0
		for _, n := range args[1:] {
			p, ok := sh.Commands.Hashed[n]
			if !ok {
				sh.Errorf("hash: %s: not found", n)
				status = 1
				continue
			}
			sh.Out(p + "\n")
		}
		return status
	}
	if len(args) > 1 && args[0] == "-d" {
		for _, n := range args[1:] {
			delete(sh.Commands.Hashed, n)
		}
		return 0
	}
	if len(args) == 0 {
		if len(sh.Commands.Hashed) == 0 {
			sh.Out("hash: hash table empty\n")
			return 0
		}
		sh.Out("hits\tcommand\n")
		names := make([]string, 0, len(sh.Commands.Hashed))
		for n := range sh.Commands.Hashed {
			names = append(names, n)
		}
		slices.Sort(names)
		for _, n := range names {
			sh.Out("   1\t" + sh.Commands.Hashed[n] + "\n")
		}
		return 0
	}
	status := 0
	for _, n := range args {
		if On(sh, n) || sh.Commands.Funcs[n] != nil || strings.IndexByte(n, '/') >= 0 {
			continue
		}
		delete(sh.Commands.Hashed, n)
		if _, ok := sh.FindCommand(n); !ok {
			sh.Errorf("hash: %s: not found", n)
			status = 1
		}
	}
	return status
}

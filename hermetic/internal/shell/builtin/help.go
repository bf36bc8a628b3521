package builtin

import (
	"strings"

	"egressd/hermetic/internal/shell/state"
)

// runHelp is the builtin help.
func runHelp(sh *state.Shell, args []string) int {
	if len(args) == 1 {
		sh.Out("GNU bash, version " + state.BashVersion + " (x86_64-pc-linux-gnu), in the hermetic tier\nThese shell commands are defined internally.\n\n " + strings.Join(Names(), "\n ") + "\n")
		return 0
	}
	status := 0
	for _, a := range args[1:] {
		if strings.HasPrefix(a, "-") {
			continue
		}
		if find(a) == nil && !isKeyword(a) {
			sh.Errorf("help: no help topics match `%s'.  Try `help help' or `man -k %s' or `info %s'.", a, a, a)
			status = 1
			continue
		}
		sh.Out(a + ": " + a + "\n    A builtin of the shell; see bash(1).\n")
	}
	return status
}

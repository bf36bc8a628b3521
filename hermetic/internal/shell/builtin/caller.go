package builtin

import (
	"egressd/hermetic/internal/shell/number"
	"egressd/hermetic/internal/shell/state"
)

// runCaller is the builtin caller.
func runCaller(sh *state.Shell, args []string) int {
	n := len(sh.Frames)
	if n == 0 {
		return 1
	}
	at := func(i int) (name, source string) {
		if i < 0 {
			source = sh.Program.Script
			if source == "" {
				source = "NULL"
			}
			return "main", source
		}
		return sh.Frames[i].Name, sh.Frames[i].Source
	}
	if len(args) == 1 {
		_, source := at(n - 2)
		sh.Outf("%d %s\n", sh.Frames[n-1].CallLine, source)
		return 0
	}
	k, ok := number.Parse(args[1])
	if !ok || k < 0 || k >= int64(n) {
		return 1
	}
	i := n - 1 - int(k)
	name, source := at(i - 1)
	sh.Outf("%d %s %s\n", sh.Frames[i].CallLine, name, source)
	return 0
}

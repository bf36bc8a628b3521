package builtin

import (
	"strings"

	"egressd/hermetic/internal/shell/quote"
	"egressd/hermetic/internal/shell/state"
)

// runEcho is the builtin echo.
func runEcho(sh *state.Shell, args []string) int {
	newline, escapes := true, sh.Options.Shopt["xpg_echo"]
	args = args[1:]
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' && strings.Trim(args[0][1:], "neE") == "" {
		for _, c := range args[0][1:] {
			switch c {
			case 'n':
				newline = false
			case 'e':
				escapes = true
			case 'E':
				escapes = false
			}
		}
		args = args[1:]
	}
	text := strings.Join(args, " ")
	if escapes {
		var stop bool
		if text, stop = quote.DecodeEcho(text); stop {
			newline = false
		}
	}
	if newline {
		text += "\n"
	}
	sh.Commands.Running = "echo"
	if !sh.Out(text) {
		return 1
	}
	return 0
}

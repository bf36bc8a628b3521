package state

import (
	"fmt"
	"strings"
	"syscall"

	"egressd/hermetic/command"
)

// ScriptName is the name of the running text in messages: its file, or $0.
func (sh *Shell) ScriptName() string {
	if n := len(sh.Frames); n > 0 && sh.Frames[n-1].Source != "" {
		return sh.Frames[n-1].Source
	}
	return sh.Program.Arg0
}

// Prefix is what bash begins a message with: name and line.
func (sh *Shell) Prefix() string { return fmt.Sprintf("%s: line %d: ", sh.ScriptName(), sh.Line) }

// Errorf writes a message as bash does: "NAME: line N: text".
func (sh *Shell) Errorf(format string, args ...any) {
	sh.ErrText(sh.Prefix() + fmt.Sprintf(format, args...) + "\n")
}

// ErrText writes s to the standard error.
func (sh *Shell) ErrText(s string) {
	sh.Stream(2).Write([]byte(s)) //nolint:errcheck // nowhere to report it
}

// Out writes to the standard output. If that fails it writes a message and
// reports false.
func (sh *Shell) Out(s string) bool {
	if s == "" {
		return true
	}
	_, err := sh.Stream(1).Write([]byte(s))
	if err == nil {
		return true
	}
	sh.Check()
	sh.CheckLimit()
	if err == syscall.EPIPE {
		sh.Proc.Killed.CompareAndSwap(0, int32(syscall.SIGPIPE))
		panic(Ended{Status: 141})
	}
	sh.Errorf("%swrite error: %s", sh.who(), command.Reason(err))
	return false
}

// who is the name of the running builtin, for messages.
func (sh *Shell) who() string {
	if sh.Commands.Running == "" {
		return ""
	}
	return sh.Commands.Running + ": "
}

// Outf is Out with a format.
func (sh *Shell) Outf(format string, args ...any) bool { return sh.Out(fmt.Sprintf(format, args...)) }

// Letters reads the options of a builtin that has only letters without values.
// It returns those given and the operands. For an unknown letter it prints
// bash's message, with usage after the name of the builtin, and reports false.
func (sh *Shell) Letters(args []string, known, usage string) (given map[rune]bool, operands []string, ok bool) {
	given = map[rune]bool{}
	i := 1
	for ; i < len(args) && len(args[i]) > 1 && args[i][0] == '-'; i++ {
		if args[i] == "--" {
			i++
			break
		}
		for _, c := range args[i][1:] {
			if !strings.ContainsRune(known, c) {
				sh.Errorf("%s: -%c: invalid option", args[0], c)
				sh.ErrText(args[0] + ": usage: " + args[0] + " " + usage + "\n")
				return nil, nil, false
			}
			given[c] = true
		}
	}
	return given, args[i:], true
}

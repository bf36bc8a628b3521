package shell

import (
	"context"
	"io"
	"path"
	"strings"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/shell/builtin"
	"egressd/hermetic/internal/shell/options"
	"egressd/hermetic/internal/shell/proc"
	"egressd/hermetic/internal/shell/state"
)

// child runs the command sh or bash: a new shell, which inherits what is
// exported.
func child(ctx context.Context, s *state.Session, c *command.Call) int {
	sh := childShell(ctx, s, c)
	o, ok := shellArgs(sh, c.Args[1:])
	if !ok {
		sh.Release()
		return 2
	}
	if o.done {
		sh.Release()
		return 0
	}
	return subshell(sh, func() {
		switch {
		case o.command:
			sh.Options.Flags |= options.Command
			runText(sh, o.text, state.CommandUnit)
		case len(o.rest) > 0 && !o.stdin:
			runFile(sh, o.rest[0], o.rest[1:])
		default:
			sh.Params.List = o.rest
			sh.Options.Flags |= options.Stdin
			runStdin(sh)
		}
	})
}

// childShell makes that shell: its streams, its environment, and what a process
// would inherit.
func childShell(ctx context.Context, s *state.Session, c *command.Call) *state.Shell {
	var parent *proc.Proc
	in, _ := ctx.Value(inheritedKey{}).(*inherited)
	if in != nil {
		parent = in.proc
	}
	base := ctx
	ctx, cancel := context.WithCancelCause(ctx)
	sh := state.New(ctx, cancel, s, parent, c.Env)
	sh.Program.Base = base
	sh.Program.Arg0 = c.Args[0]
	sh.Program.Posix = path.Base(c.Args[0]) == "sh"
	sh.Dir.Path, sh.Dir.Umask = c.Dir, uint32(c.Umask)
	for n, f := range descriptorsOf(ctx, c) {
		sh.FDs.Open[n] = f.Dup()
	}
	if in != nil {
		sh.Work.Calls = in.depth
		for sig := range in.ignored {
			sh.Traps.Actions[sig] = ""
		}
	}
	sh.InitVars()
	sh.Deeper()
	return sh
}

// shellOptions is the arguments of bash.
type shellOptions struct {
	command bool // -c
	stdin   bool // -s
	done    bool // --version
	text    string
	rest    []string
}

// shellArgs reads them; false after a message.
func shellArgs(sh *state.Shell, args []string) (o shellOptions, ok bool) {
	for len(args) > 0 && !o.done {
		a := args[0]
		if a == "--" || a == "-" {
			args = args[1:]
			break
		}
		if len(a) < 2 || a[0] != '-' && a[0] != '+' {
			break
		}
		if strings.HasPrefix(a, "--") {
			args, ok = o.long(sh, a, args[1:])
		} else {
			args, ok = o.letters(sh, a, args[1:])
		}
		if !ok {
			return o, false
		}
	}
	if o.command && !o.done {
		if len(args) == 0 {
			sh.ErrText(sh.Program.Arg0 + ": -c: option requires an argument\n")
			return o, false
		}
		o.text, args = args[0], args[1:]
		if len(args) > 0 {
			sh.Program.Arg0, sh.Params.List = args[0], args[1:]
		}
	}
	o.rest = args
	return o, true
}

// long applies an option such as --posix, and returns the arguments after it
// and its value.
func (o *shellOptions) long(sh *state.Shell, a string, args []string) (rest []string, ok bool) {
	switch a {
	case "--version":
		io.WriteString(sh.Stream(1), "GNU bash, version "+state.BashVersion+" (x86_64-pc-linux-gnu)\n") //nolint:errcheck // as bash
		o.done = true
	case "--norc", "--noprofile", "--login", "--noediting", "--restricted", "--verbose":
	case "--posix":
		sh.Options.Flags |= options.Posix
	case "--rcfile", "--init-file":
		if len(args) > 0 {
			args = args[1:]
		}
	default:
		sh.ErrText("bash: " + a + ": invalid option\n")
		return args, false
	}
	return args, true
}

// letters applies options such as -ec, and returns the arguments after them and
// their values.
func (o *shellOptions) letters(sh *state.Shell, a string, args []string) (rest []string, ok bool) {
	for _, letter := range a[1:] {
		switch letter {
		case 'c':
			o.command = true
		case 's':
			o.stdin = true
		case 'l', 'i', 'r':
		case 'o', 'O':
			if len(args) == 0 {
				continue
			}
			if letter == 'O' {
				sh.Options.Shopt[args[0]] = a[0] == '-'
			} else if !builtin.SetOptions(sh, []string{a[:1] + "o", args[0]}) {
				return args, false
			}
			args = args[1:]
		default:
			if !builtin.SetOptions(sh, []string{a[:1] + string(letter)}) {
				return args, false
			}
		}
	}
	return args, true
}

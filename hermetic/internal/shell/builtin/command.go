package builtin

import (
	"strings"

	"egressd/hermetic/internal/shell/quote"
	"egressd/hermetic/internal/shell/state"
)

// runCommand is the builtin command.
func runCommand(sh *state.Shell, args []string) int {
	given, args, ok := sh.Letters(args, "vVp", "[-pVv] command [arg ...]")
	if !ok {
		return 2
	}
	verbose, short, std := given['V'], given['v'], given['p']
	if len(args) == 0 {
		return 0
	}
	if short || verbose {
		return commandV(sh, args, verbose)
	}
	if On(sh, args[0]) {
		if args[0] == "exec" {
			return sh.Exec(args)
		}
		return Run(sh, args)
	}
	if std {
		if p, ok := sh.Session.LookPath(sh.Dir.Path, args[0], state.DefaultPath); ok {
			return sh.RunPath(p, args, append(sh.Environ(), "_="+p))
		}
	}
	return sh.External(args)
}

// commandV is command -v and command -V.
func commandV(sh *state.Shell, args []string, verbose bool) int {
	status := 1
	for _, name := range args {
		found := false
		describe(sh, name, false, false, func(kind, text string) bool {
			found = true
			switch {
			case verbose:
				sh.Out(text + "\n")
			case kind == "file":
				p := text[strings.Index(text, " is ")+4:]
				p = strings.TrimSuffix(strings.TrimPrefix(p, "hashed ("), ")")
				if strings.IndexByte(name, '/') >= 0 {
					p = name
				}
				sh.Out(p + "\n")
			case kind == "alias":
				sh.Out("alias " + name + "=" + quote.Single(sh.Commands.Aliases[name]) + "\n")
			default:
				sh.Out(name + "\n")
			}
			return false
		})
		if found {
			status = 0
		} else if verbose {
			sh.Errorf("command: %s: not found", name)
		}
	}
	return status
}

// runBuiltin is the builtin builtin.
func runBuiltin(sh *state.Shell, args []string) int {
	args = args[1:]
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		return 0
	}
	if find(args[0]) == nil {
		sh.Errorf("builtin: %s: not a shell builtin", args[0])
		return 1
	}
	return Run(sh, args)
}

// runEnable is the builtin enable.
func runEnable(sh *state.Shell, args []string) int {
	off, print := false, len(args) == 1
	i := 1
	for ; i < len(args) && len(args[i]) > 1 && args[i][0] == '-'; i++ {
		for _, c := range args[i][1:] {
			switch c {
			case 'n':
				off = true
			case 'a', 'p', 's':
				print = true
			default:
				sh.Errorf("enable: -%c: dynamic loading not available", c)
				return 1
			}
		}
	}
	if i == len(args) || print {
		for _, n := range Names() {
			if sh.Commands.Disabled[n] == off {
				sh.Out("enable " + map[bool]string{true: "-n ", false: ""}[off] + n + "\n")
			}
		}
		return 0
	}
	status := 0
	for _, n := range args[i:] {
		if find(n) == nil {
			sh.Errorf("enable: %s: not a shell builtin", n)
			status = 1
			continue
		}
		if sh.Commands.Disabled == nil {
			sh.Commands.Disabled = map[string]bool{}
		}
		sh.Commands.Disabled[n] = off
	}
	return status
}

package shell

import (
	"fmt"
	"strings"
	"syscall"

	"egressd/hermetic/command"
)

type builtinFunc func(sh *shell, args []string) int

// builtin is the builtin of that name; nil when there is none.
func builtin(name string) builtinFunc {
	switch name {
	case ":", "true":
		return func(*shell, []string) int { return 0 }
	case "false":
		return func(*shell, []string) int { return 1 }
	case "echo":
		return builtinEcho
	case "printf":
		return builtinPrintf
	case "test", "[":
		return builtinTest
	case "cd":
		return builtinCd
	case "pwd":
		return builtinPwd
	case "read":
		return builtinRead
	case "mapfile", "readarray":
		return builtinMapfile
	case "set":
		return builtinSet
	case "shopt":
		return builtinShopt
	case "unset":
		return builtinUnset
	case "shift":
		return builtinShift
	case "eval":
		return builtinEval
	case ".", "source":
		return builtinSource
	case "exit":
		return builtinExit
	case "return":
		return builtinReturn
	case "break", "continue":
		return builtinBreak
	case "exec":
		return func(sh *shell, args []string) int { return sh.execArgs(args) }
	case "trap":
		return builtinTrap
	case "kill":
		return builtinKill
	case "declare", "typeset", "local", "export", "readonly":
		return builtinDeclare
	}
	return builtinMore(name)
}

func builtinMore(name string) builtinFunc {
	switch name {
	case "let":
		return builtinLet
	case "getopts":
		return builtinGetopts
	case "type":
		return builtinType
	case "command":
		return builtinCommand
	case "builtin":
		return builtinBuiltin
	case "enable":
		return builtinEnable
	case "hash":
		return builtinHash
	case "alias":
		return builtinAlias
	case "unalias":
		return builtinUnalias
	case "wait":
		return builtinWait
	case "jobs":
		return builtinJobs
	case "fg", "bg":
		return builtinFg
	case "disown":
		return builtinDisown
	case "pushd", "popd":
		return builtinPushd
	case "dirs":
		return builtinDirs
	case "umask":
		return builtinUmask
	case "ulimit":
		return builtinUlimit
	case "times":
		return builtinTimes
	case "caller":
		return builtinCaller
	case "help":
		return builtinHelp
	case "fc", "history":
		return func(*shell, []string) int { return 0 }
	case "bind", "complete", "compopt":
		return func(*shell, []string) int { return 0 }
	case "compgen":
		return builtinCompgen
	case "suspend", "logout":
		return func(sh *shell, args []string) int {
			sh.errorf("%s: cannot %s here", args[0], args[0])
			return 1
		}
	}
	return nil
}

func builtinNames() []string {
	return []string{
		".", ":", "[", "alias", "bg", "bind", "break", "builtin", "caller", "cd", "command", "compgen", "complete", "compopt",
		"continue", "declare", "dirs", "disown", "echo", "enable", "eval", "exec", "exit", "export", "false", "fc", "fg",
		"getopts", "hash", "help", "history", "jobs", "kill", "let", "local", "logout", "mapfile", "popd", "printf", "pushd",
		"pwd", "read", "readarray", "readonly", "return", "set", "shift", "shopt", "source", "suspend", "test", "times", "trap",
		"true", "type", "typeset", "ulimit", "umask", "unalias", "unset", "wait",
	}
}

func (sh *shell) builtinOn(name string) bool { return builtin(name) != nil && !sh.disabled[name] }

func (sh *shell) runBuiltin(args []string) int { return builtin(args[0])(sh, args) }

// out writes to the standard output; a builtin whose output cannot be written
// says so and fails.
func (sh *shell) out(s string) bool {
	if s == "" {
		return true
	}
	_, err := sh.bound(1).Write([]byte(s))
	if err == nil {
		return true
	}
	sh.check()
	sh.checkLimit()
	if err == syscall.EPIPE {
		sh.proc.killed.CompareAndSwap(0, int32(syscall.SIGPIPE))
		panic(ended{141})
	}
	sh.errorf("%swrite error: %s", sh.who(), command.Reason(err))
	return false
}

// who is the builtin that runs, for messages.
func (sh *shell) who() string {
	if sh.running == "" {
		return ""
	}
	return sh.running + ": "
}

func (sh *shell) outf(format string, args ...any) bool { return sh.out(fmt.Sprintf(format, args...)) }

func builtinEcho(sh *shell, args []string) int {
	newline, escapes := true, sh.shopts["xpg_echo"] || sh.run.posix && sh.run.dash
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
		if text, stop = echoEscapes(text); stop {
			newline = false
		}
	}
	if newline {
		text += "\n"
	}
	sh.running = "echo"
	if !sh.out(text) {
		return 1
	}
	return 0
}

// echoEscapes reads the escapes of echo -e and printf %b; stop: \c was there.
func echoEscapes(s string) (text string, stop bool) {
	if strings.IndexByte(s, '\\') < 0 {
		return s, false
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		switch s[i] {
		case '\\':
			b.WriteByte('\\')
		case 'c':
			return b.String(), true
		default:
			text, used, ok := escape(s[i:], true)
			if !ok {
				b.WriteByte('\\')
				b.WriteByte(s[i])
				continue
			}
			b.WriteString(text)
			i += used - 1
		}
	}
	return b.String(), false
}

func builtinUnset(sh *shell, args []string) int {
	given, args, ok := sh.letters(args, "fvn", "[-f] [-v] [-n] [name ...]")
	if !ok {
		return 2
	}
	funcs, vars, refs := given['f'], given['v'], given['n']
	status := 0
	for _, name := range args {
		if funcs {
			if f := sh.funcs[name]; f != nil && f.readonly {
				sh.errorf("unset: %s: cannot unset: readonly function", name)
				status = 1
				continue
			}
			delete(sh.funcs, name)
			continue
		}
		if base, index, ok := splitSubscript(name); ok {
			if !sh.unsetElement(base, index) {
				status = 1
			}
			continue
		}
		if !validName(name) {
			if !vars {
				delete(sh.funcs, name)
				continue
			}
			sh.errorf("unset: `%s': not a valid identifier", name)
			status = 1
			continue
		}
		if !refs {
			if to := sh.resolve(name); to != name {
				if base, index, ok := splitSubscript(to); ok {
					sh.unsetElement(base, index)
					continue
				}
				name = to
			}
		}
		if !vars && sh.lookupRef(name) == nil {
			delete(sh.funcs, name)
			continue
		}
		if !sh.unset(name) {
			status = 1
		}
	}
	return status
}

func (sh *shell) unsetElement(name, index string) bool {
	name = sh.resolve(name)
	v := sh.raw(name)
	if v == nil {
		return true
	}
	if v.readonly {
		sh.errorf("unset: %s: cannot unset: readonly variable", name)
		return false
	}
	v.own()
	switch {
	case v.kind == assocVar:
		v.pairs.remove(sh.expandText(index))
	case index == "":
	case index == "@" || index == "*":
		if v.kind == indexedVar {
			v.list.elems = nil
		}
	case v.kind == indexedVar:
		at := sh.arith(index)
		if at < 0 {
			at += v.list.next()
		}
		if at < 0 {
			sh.errorf("unset: [%s]: bad array subscript", index)
			return false
		}
		v.list.remove(at)
	default:
		if sh.arith(index) == 0 {
			return sh.unset(name)
		}
		sh.errorf("unset: %s: not an array variable", name)
		return false
	}
	return true
}

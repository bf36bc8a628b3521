// Package builtin is the builtins of the shell.
//
//	if builtin.On(sh, args[0]) {
//		sh.Status = builtin.Run(sh, args)
//	}
//
// Each file is named after its builtins. Those that are about one part of the
// shell are in its package: wait, jobs, kill and trap in jobs; declare and unset
// in assign; test and [ in test. A builtin that runs commands (eval, source,
// command, exec) does so through state.Interpreter.
package builtin

import (
	"egressd/hermetic/internal/shell/assign"
	"egressd/hermetic/internal/shell/jobs"
	"egressd/hermetic/internal/shell/state"
	"egressd/hermetic/internal/shell/test"
)

// runFunc runs a builtin; args[0] is its name. It returns the exit status.
type runFunc func(sh *state.Shell, args []string) int

// find is the builtin of a name; nil if there is none.
func find(name string) runFunc {
	switch name {
	case ":", "true":
		return func(*state.Shell, []string) int { return 0 }
	case "false":
		return func(*state.Shell, []string) int { return 1 }
	case "echo":
		return runEcho
	case "printf":
		return runPrintf
	case "test", "[":
		return test.Run
	case "cd":
		return runCd
	case "pwd":
		return runPwd
	case "read":
		return runRead
	case "mapfile", "readarray":
		return runMapfile
	case "set":
		return runSet
	case "shopt":
		return runShopt
	case "unset":
		return assign.Unset
	case "shift":
		return runShift
	case "eval":
		return runEval
	case ".", "source":
		return runSource
	case "exit":
		return runExit
	case "return":
		return runReturn
	case "break", "continue":
		return runBreak
	case "exec":
		return func(sh *state.Shell, args []string) int { return sh.Exec(args) }
	case "trap":
		return jobs.Trap
	case "kill":
		return jobs.Kill
	case "declare", "typeset", "local", "export", "readonly":
		return assign.Declare
	}
	return findMore(name)
}

// findMore is the second half of find.
func findMore(name string) runFunc {
	switch name {
	case "let":
		return runLet
	case "getopts":
		return runGetopts
	case "type":
		return runType
	case "command":
		return runCommand
	case "builtin":
		return runBuiltin
	case "enable":
		return runEnable
	case "hash":
		return runHash
	case "alias":
		return runAlias
	case "unalias":
		return runUnalias
	case "wait":
		return jobs.Wait
	case "jobs":
		return jobs.Jobs
	case "fg", "bg":
		return jobs.Foreground
	case "disown":
		return jobs.Disown
	case "pushd", "popd":
		return runPushd
	case "dirs":
		return runDirs
	case "umask":
		return runUmask
	case "ulimit":
		return runUlimit
	case "times":
		return runTimes
	case "caller":
		return runCaller
	case "help":
		return runHelp
	case "fc", "history":
		return func(*state.Shell, []string) int { return 0 }
	case "bind", "complete", "compopt":
		return func(*state.Shell, []string) int { return 0 }
	case "compgen":
		return runCompgen
	case "suspend", "logout":
		return func(sh *state.Shell, args []string) int {
			sh.Errorf("%s: cannot %s here", args[0], args[0])
			return 1
		}
	}
	return nil
}

// Names lists the builtins, sorted.
func Names() []string {
	return []string{
		".", ":", "[", "alias", "bg", "bind", "break", "builtin", "caller", "cd", "command", "compgen", "complete", "compopt",
		"continue", "declare", "dirs", "disown", "echo", "enable", "eval", "exec", "exit", "export", "false", "fc", "fg",
		"getopts", "hash", "help", "history", "jobs", "kill", "let", "local", "logout", "mapfile", "popd", "printf", "pushd",
		"pwd", "read", "readarray", "readonly", "return", "set", "shift", "shopt", "source", "suspend", "test", "times", "trap",
		"true", "type", "typeset", "ulimit", "umask", "unalias", "unset", "wait",
	}
}

// On reports whether name is a builtin that is not disabled.
func On(sh *state.Shell, name string) bool { return find(name) != nil && !sh.Commands.Disabled[name] }

// Run runs the builtin args[0] and reports its exit status.
func Run(sh *state.Shell, args []string) int { return find(args[0])(sh, args) }

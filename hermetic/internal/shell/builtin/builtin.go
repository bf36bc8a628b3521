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
	for _, group := range []func(string) runFunc{control, variables, commands, text, places, background, rest} {
		if run := group(name); run != nil {
			return run
		}
	}
	return nil
}

// control is the builtins that decide what runs next.
func control(name string) runFunc {
	switch name {
	case ":", "true":
		return status(0)
	case "false":
		return status(1)
	case "test", "[":
		return test.Run
	case "let":
		return runLet
	case "break", "continue":
		return runBreak
	case "return":
		return runReturn
	case "exit":
		return runExit
	case "eval":
		return runEval
	case ".", "source":
		return runSource
	case "exec":
		return (*state.Shell).Exec
	}
	return nil
}

// variables is the builtins about variables, parameters and options.
func variables(name string) runFunc {
	switch name {
	case "declare", "typeset", "local", "export", "readonly":
		return assign.Declare
	case "unset":
		return assign.Unset
	case "set":
		return runSet
	case "shopt":
		return runShopt
	case "shift":
		return runShift
	case "getopts":
		return runGetopts
	}
	return nil
}

// commands is the builtins about what the name of a command means.
func commands(name string) runFunc {
	switch name {
	case "alias":
		return runAlias
	case "unalias":
		return runUnalias
	case "builtin":
		return runBuiltin
	case "command":
		return runCommand
	case "enable":
		return runEnable
	case "hash":
		return runHash
	case "type":
		return runType
	case "compgen":
		return runCompgen
	}
	return nil
}

// text is the builtins that read and write.
func text(name string) runFunc {
	switch name {
	case "echo":
		return runEcho
	case "printf":
		return runPrintf
	case "read":
		return runRead
	case "mapfile", "readarray":
		return runMapfile
	}
	return nil
}

// places is the builtins about directories and files.
func places(name string) runFunc {
	switch name {
	case "cd":
		return runCd
	case "pwd":
		return runPwd
	case "pushd", "popd":
		return runPushd
	case "dirs":
		return runDirs
	case "umask":
		return runUmask
	}
	return nil
}

// background is the builtins about jobs, signals and traps.
func background(name string) runFunc {
	switch name {
	case "wait":
		return jobs.Wait
	case "jobs":
		return jobs.Jobs
	case "fg", "bg":
		return jobs.Foreground
	case "disown":
		return jobs.Disown
	case "kill":
		return jobs.Kill
	case "trap":
		return jobs.Trap
	}
	return nil
}

// rest is all other builtins.
func rest(name string) runFunc {
	switch name {
	case "ulimit":
		return runUlimit
	case "times":
		return runTimes
	case "caller":
		return runCaller
	case "help":
		return runHelp
	case "fc", "history", "bind", "complete", "compopt": // for people at a terminal
		return status(0)
	case "suspend", "logout":
		return func(sh *state.Shell, args []string) int {
			sh.Errorf("%s: cannot %s here", args[0], args[0])
			return 1
		}
	}
	return nil
}

// status is a builtin that does nothing but have this exit status.
func status(n int) runFunc { return func(*state.Shell, []string) int { return n } }

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

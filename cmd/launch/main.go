// Launch runs a program behind a deny-by-default gate. See help.txt, which is
// what "launch help" prints.
package main

import "os"

func main() {
	if code, ok := inner(os.Args); ok {
		os.Exit(code)
	}
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// Exit codes of launch's own; a program that ran gives its own, as with env(1).
const (
	exitOK       = 0
	exitNo       = 1   // a subcommand's answer is no, or it failed
	exitUsage    = 2   // a subcommand was misused, or a policy file is wrong
	exitLauncher = 125 // running a program: launch itself failed, also by misuse
)

// launcher is what every command gets: the three streams and the environment.
type launcher struct {
	stdin, stdout, stderr *os.File
	environ               []string
}

// run finds the command that args name and reports its exit code.
func run(args []string, stdin, stdout, stderr *os.File) int {
	dropStandardLog()
	l := &launcher{stdin: stdin, stdout: stdout, stderr: stderr, environ: os.Environ()}
	if len(args) == 0 {
		l.say(shortHelp)
		return exitLauncher
	}
	for _, c := range commands() {
		if args[0] == c.name {
			if len(args) == 2 && (args[1] == "--help" || args[1] == "-help" || args[1] == "-h") {
				return l.help(nil)
			}
			return c.run(l, args[1:])
		}
	}
	return l.runProgram(args)
}

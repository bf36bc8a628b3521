// Launch runs a program behind a gate that lets out only what you allow.
//
//	launch --allow api.example.com -- claude -p "fix the tests"
//	launch --preset npm --allow github.com:22,443 -- npm test
//
// See help.txt, which "launch help" prints.
package main

import (
	"flag"
	"os"

	"egressd/internal/cli"
)

func main() {
	if code, ok := inner(os.Args); ok {
		os.Exit(code)
	}
	cli.SilenceStandardLog()
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// exitLauncher is the exit code if launch itself failed to run a program, also by
// misuse. A program that ran gives its own, as with env(1).
const exitLauncher = 125

// launcher is what every command gets.
type launcher struct{ *cli.Program }

// run runs the command that args name, or the program that they end with, and
// reports the exit code.
func run(args []string, stdin, stdout, stderr *os.File) int {
	l := &launcher{&cli.Program{
		Name: "launch", Stdin: stdin, Stdout: stdout, Stderr: stderr, Environ: os.Environ(),
		Help: func(*flag.FlagSet) string { return longHelp },
	}}
	if len(args) == 0 {
		l.Say(shortHelp)
		return exitLauncher
	}
	if c, ok := cli.Find(l.commands(), args[0]); ok {
		if cli.WantsHelp(args[1:]) {
			return l.help(nil)
		}
		return c.Run(args[1:])
	}
	return l.runProgram(args)
}

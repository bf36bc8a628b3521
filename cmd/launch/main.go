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
	"egressd/internal/run"
	"egressd/sandbox/hermetic/inside"
	"egressd/sandbox/vercel/fake/machine"
)

func main() {
	if code, ok := inner(os.Args); ok {
		os.Exit(code)
	}
	cli.SilenceStandardLog()
	os.Exit(command(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// inner runs this program as what it is inside a sandbox: the hermetic tier's
// worker, or the agent of the double. ok is false for a launcher.
func inner(args []string) (code int, ok bool) {
	switch {
	case machine.Agent(args):
		return 0, true
	case inside.IsWorker(args):
		return inside.Run(nil), true
	}
	return 0, false
}

// launcher is what every command gets.
type launcher struct{ run.Launcher }

// command runs the command that args name, or the program that they end with, and
// reports the exit code.
func command(args []string, stdin, stdout, stderr *os.File) int {
	l := &launcher{run.Launcher{Program: &cli.Program{
		Name: "launch", Stdin: stdin, Stdout: stdout, Stderr: stderr, Environ: os.Environ(),
		Help: func(*flag.FlagSet) string { return longHelp },
	}}}
	if len(args) == 0 {
		l.Say(shortHelp)
		return run.ExitLauncher
	}
	if c, ok := cli.Find(l.commands(), args[0]); ok {
		if cli.WantsHelp(args[1:]) {
			return l.help(nil)
		}
		return c.Run(args[1:])
	}
	return l.program(args)
}

// Egressd is the gate as a daemon, for one agent or for many.
//
//	egressd --policy policy.yaml
//	egressd --allow api.example.com --listen 127.0.0.1:3128
//
// See help.txt, which "egressd help" prints.
package main

import (
	"os"

	"egressd/internal/cli"
)

func main() {
	cli.SilenceStandardLog()
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// program is what every command gets.
type program struct {
	*cli.Program

	variables []string // those that flags of the command were read from
}

// run runs the command that args name and reports its exit code. Without a command
// it runs the daemon.
func run(args []string, stdin, stdout, stderr *os.File) int {
	p := &program{Program: &cli.Program{
		Name: "egressd", Stdin: stdin, Stdout: stdout, Stderr: stderr, Environ: os.Environ(), Help: helpOf,
	}}
	if len(args) > 0 {
		if c, ok := cli.Find(p.commands(), args[0]); ok {
			return c.Run(args[1:])
		}
	}
	return p.daemon(args)
}

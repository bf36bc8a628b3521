// Egressd is the gate as a daemon, for one agent or for many. See help.txt,
// which is what "egressd help" prints.
package main

import (
	"os"
	"strings"
)

func main() {
	dropStandardLog()
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// Exit codes.
const (
	exitOK    = 0
	exitNo    = 1 // the answer is no, or it failed
	exitUsage = 2 // misused, or a policy with errors
)

// program is what every command gets: the three streams and the environment.
type program struct {
	stdin, stdout, stderr *os.File
	environ               []string

	variables []string // those that the flags of the command came from
}

// run finds the command that args name and reports its exit code. Flags
// without a command, and nothing at all, run the daemon.
func run(args []string, stdin, stdout, stderr *os.File) int {
	p := &program{stdin: stdin, stdout: stdout, stderr: stderr, environ: os.Environ()}
	if len(args) > 0 {
		for _, c := range commands() {
			if args[0] == c.name {
				return c.run(p, args[1:])
			}
		}
	}
	return p.daemon(args)
}

// getenv reports a variable of the environment; "" when it is not set.
func (p *program) getenv(name string) string {
	for _, kv := range p.environ {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return v
		}
	}
	return ""
}

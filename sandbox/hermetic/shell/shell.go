// Package shell is the language of the hermetic tier: bash, without a process.
package shell

import (
	"context"
	"errors"
	"io"
	"os"

	"egressd/sandbox/hermetic/command"
)

// Config is one session of the shell.
type Config struct {
	Name    string   // $0: "bash" or "sh"
	Args    []string // $1 and on
	Options []string // as for set: "-e", "-u", "-o", "pipefail"
	Dir     string   // working directory inside, absolute
	Env     []string // KEY=VALUE

	Stdin          *os.File // nil: empty
	Stdout, Stderr io.Writer

	Commands command.Table
	// Session's FS, Budget, Now, Proxy and Roots are set; Exec and Find are made
	// by Run.
	Session *command.Session
}

// Run runs script and reports its exit status: 2 for a syntax error, 126 when a
// limit was met (the error is its *limits.Exceeded; nothing was printed about
// it). It returns after every job has ended or been given up, ctx being done.
func Run(ctx context.Context, c Config, script string) (int, error) {
	return 126, errors.ErrUnsupported
}

// Hermetic-sh runs a bash script without processes and sockets, over one directory.
//
//	hermetic-sh [-C DIR] [--overlay] [--limit NAME=N]... -c SCRIPT [NAME [ARGUMENT...]]
//	hermetic-sh [-C DIR] [--overlay] [--limit NAME=N]... FILE [ARGUMENT...]
//
// DIR, or else the working directory, is "/" inside. The exit status is the
// script's; 126 if a limit ended it, 125 if nothing was run, 2 for a mistake in
// the options. There is no network.
//
// It is the interpreter alone, for conformance runs and for scripts that are
// trusted: nothing confines this process. "launch --tier hermetic" of egressd runs
// the same interpreter in a worker that the kernel confines.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"

	"egressd/hermetic"
)

// Exit statuses of its own.
const (
	exitUsage = 2
	exitError = 125
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string, stdin *os.File, stdout, stderr io.Writer) int {
	session := &hermetic.Session{Files: hermetic.Files{Dir: "."}, Stdin: stdin, Stdout: stdout, Stderr: stderr}
	script, err := parse(args, session, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintf(stderr, "hermetic-sh: %v\n", err)
		return exitUsage
	}
	result, err := session.Run(ctx, script)
	if err != nil {
		fmt.Fprintf(stderr, "hermetic-sh: %v\n", err)
	}
	if result.Unlisted != nil {
		fmt.Fprintf(stderr, "hermetic-sh: the changes can't be listed: %v\n", result.Unlisted)
		return exitError
	}
	for _, c := range result.Changes {
		fmt.Fprintf(stderr, "hermetic-sh: kept out of %s: %c %s\n", session.Files.Dir, c.Kind, c.Path)
	}
	return result.Code
}

// parse reads the command line into session, and reports what to run.
func parse(args []string, session *hermetic.Session, stderr io.Writer) (hermetic.Script, error) {
	var script hermetic.Script
	fs := flag.NewFlagSet("hermetic-sh", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.StringVar(&session.Files.Dir, "C", ".", "run in `DIR`, which is / inside")
	fs.StringVar(&script.Text, "c", "", "run `SCRIPT`; what follows is $0, $1 and on")
	fs.BoolVar(&session.Files.Overlay, "overlay", false, "keep changes out of DIR, and list them at the end")
	fs.Func("limit", "bound what the script may use: `NAME=N[K|M|G]`", session.Limits.Set)
	fs.Usage = func() {}
	switch err := fs.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintln(stderr, "usage: hermetic-sh [-C DIR] [--overlay] [--limit NAME=N]... -c SCRIPT | FILE [ARGUMENT...]")
		fs.SetOutput(stderr)
		fs.PrintDefaults()
		return script, err
	case err != nil:
		return script, err
	}
	inline := false
	fs.Visit(func(f *flag.Flag) { inline = inline || f.Name == "c" })
	rest := fs.Args()
	switch {
	case inline && len(rest) > 0:
		script.Name, script.Args = rest[0], rest[1:]
	case inline:
	case len(rest) == 0:
		return script, errors.New("what is there to run? -c SCRIPT, or the name of a file")
	default:
		text, err := os.ReadFile(rest[0])
		if err != nil {
			return script, err
		}
		script.Text, script.Name, script.Args = string(text), rest[0], rest[1:]
	}
	return script, nil
}

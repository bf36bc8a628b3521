// Package shell is the language of the hermetic tier: bash, without a process.
//
//	status, err := shell.Run(ctx, shell.Config{
//		Name: "bash", Dir: "/", Stdout: out, Stderr: errs,
//		Commands: table, Session: session,
//	}, "for f in *.txt; do wc -l <$f; done")
//
// The parser is mvdan.cc/sh/v3/syntax. The tree is run here, because what bash
// promises about descriptors, traps, jobs, arrays, bytes and errors cannot be
// added to another interpreter from outside, and because an interpreter that
// knows no file, user, process or clock of the host cannot reach one. Files are
// vfs names, pipes are memory, processes are goroutines with a number.
//
// This package runs statements, compound commands, functions, pipelines,
// substitutions and scripts. What a statement is made of has packages of its
// own; each needs only those above it in this list, and asks this one through
// state.Interpreter:
//
//	chars, number, quote   text and numbers as a shell reads and writes them
//	scan, layout           syntax: reading scripts, printing functions
//	pattern, arith         patterns and expressions, without a shell
//	stream, proc           descriptors and pipes; processes, signals, jobs
//	vars, options          variables and scopes; set -o and shopt
//	state                  one shell, with all of these
//	expand                 words, parameters, globs, arithmetic
//	redirect               redirections and here-documents
//	assign                 assignments, arrays, declare, unset
//	test                   test, [ and [[
//	jobs                   wait, jobs, kill, trap
//	builtin                all other builtins
package shell

import (
	"context"
	"io"
	"os"
	"path"
	"sync"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/shell/builtin"
	"egressd/hermetic/internal/shell/options"
	"egressd/hermetic/internal/shell/state"
	"egressd/hermetic/internal/shell/stream"
)

// Config describes one session of the shell.
type Config struct {
	Name    string   // $0: "bash" or "sh"
	Args    []string // $1 and on
	Options []string // as for set: "-e", "-u", "-o", "pipefail"
	Dir     string   // working directory inside, absolute
	Env     []string // KEY=VALUE

	Stdin          *os.File // nil: empty
	Stdout, Stderr io.Writer
	Terminals      [3]bool // which of the three are terminals for test -t

	Commands command.Table
	// Session has FS, Budget, Now, Proxy and Roots; Run makes Exec and Find.
	Session *command.Session
}

// Run runs script and reports its exit status: 2 for a syntax error, 126 when a
// limit was met (the error is its *limits.Exceeded; nothing was printed about
// it). It returns after every job has ended or been given up, ctx being done.
func Run(ctx context.Context, c Config, script string) (int, error) {
	s := &state.Session{Table: c.Commands, Began: c.Session.Now(), Interpreter: interpreter{}}
	shared := *c.Session
	shared.Exec = func(ctx context.Context, call *command.Call) int { return execCall(ctx, s, call) }
	shared.Find = func(dir, name string) (string, bool) { return s.LookPath(dir, name, state.DefaultPath) }
	s.Session = &shared
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer s.Procs.Wait()

	mine, end := context.WithCancelCause(ctx)
	sh := state.New(mine, end, s, nil, c.Env)
	sh.Program.Base = ctx
	sh.Program.Arg0, sh.Params.List = c.Name, c.Args
	sh.Program.Posix = path.Base(c.Name) == "sh"
	if sh.Program.Arg0 == "" {
		sh.Program.Arg0 = "bash"
	}
	sh.Dir.Path = c.Dir
	lock := &sync.Mutex{}
	for n, f := range []*stream.File{
		stream.Reader(c.Stdin),
		stream.Writer(c.Stdout, lock, c.Session.Budget.Output),
		stream.Writer(c.Stderr, lock, c.Session.Budget.Output),
	} {
		if c.Terminals[n] {
			f.AsTerminal()
		}
		sh.SetFD(n, f)
	}
	sh.InitVars()
	if !builtin.SetOptions(sh, c.Options) {
		return 2, nil
	}
	sh.Options.Flags |= options.Command
	status := subshell(sh, func() { runText(sh, script, state.CommandUnit) })
	s.Procs.Wait()
	if cause := s.Budget.Cause(); cause != nil {
		return 126, cause
	}
	return status, nil
}

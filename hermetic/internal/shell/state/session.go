// Package state is what a shell is while it runs: variables, options,
// parameters, descriptors, traps, jobs, where it is in its script, and how it
// writes messages.
//
//	sh := state.New(ctx, cancel, session, nil, environ)
//	defer sh.Release()
//	sh.Vars.Set("x", "1")
//	sh.Errorf("%s: not found", name) // bash: line 3: x: not found
//	sub := sh.Clone()                // a subshell
//
// The packages above it do one thing to a Shell each: expand words, redirect
// descriptors, assign variables, run builtins. What they need from the
// interpreter on top of all, they ask through Interpreter.
package state

import (
	"context"
	"time"

	"mvdan.cc/sh/v3/syntax"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/shell/proc"
)

// Session is shared by all shells of one Run.
type Session struct {
	*command.Session
	Table       command.Table
	Began       time.Time
	Procs       proc.Table
	Interpreter Interpreter
}

// Program is one shell program: the script of Run, or what sh, bash or a script
// file runs inside it. Its subshells share it.
type Program struct {
	Arg0      string          // $0
	Script    string          // the file that is run; "" for -c and the standard input
	PID       int             // $$
	ParentPID int             // $PPID
	Posix     bool            // called as sh
	Base      context.Context //nolint:containedctx // its jobs end with it
}

// Interpreter runs things for expansions, builtins and traps. Package shell
// implements it. The methods are called in the goroutine of sh.
type Interpreter interface {
	// CommandSubst is the output of $(...), without the newlines at its end.
	CommandSubst(sh *Shell, c *syntax.CmdSubst) string
	// ProcessSubst starts <(...) or >(...) and reports the name of its end.
	ProcessSubst(sh *Shell, p *syntax.ProcSubst) string
	// Arith evaluates an expression. A mistake in it ends the commands of the
	// line.
	Arith(sh *Shell, text string) int64
	// EvalText runs text in sh, as eval and traps do.
	EvalText(sh *Shell, text string)
	// SourceText runs the text of the file name in sh, as source does.
	SourceText(sh *Shell, name, text string, params []string)
	// External runs a command that is not a function and not a builtin, and
	// reports its exit status.
	External(sh *Shell, args []string) int
	// RunPath runs the file or command at path, and reports its exit status.
	RunPath(sh *Shell, path string, args, env []string) int
	// Exec is the builtin exec with a command.
	Exec(sh *Shell, args []string) int
	// RunPending runs the traps of signals that came.
	RunPending(sh *Shell)
}

// CommandSubst and the other methods of Interpreter, for this shell.
func (sh *Shell) CommandSubst(c *syntax.CmdSubst) string {
	return sh.Session.Interpreter.CommandSubst(sh, c)
}

// ProcessSubst is that of Interpreter.
func (sh *Shell) ProcessSubst(p *syntax.ProcSubst) string {
	return sh.Session.Interpreter.ProcessSubst(sh, p)
}

// Arith is that of Interpreter.
func (sh *Shell) Arith(text string) int64 { return sh.Session.Interpreter.Arith(sh, text) }

// EvalText is that of Interpreter.
func (sh *Shell) EvalText(text string) { sh.Session.Interpreter.EvalText(sh, text) }

// SourceText is that of Interpreter.
func (sh *Shell) SourceText(name, text string, params []string) {
	sh.Session.Interpreter.SourceText(sh, name, text, params)
}

// External is that of Interpreter.
func (sh *Shell) External(args []string) int { return sh.Session.Interpreter.External(sh, args) }

// RunPath is that of Interpreter.
func (sh *Shell) RunPath(path string, args, env []string) int {
	return sh.Session.Interpreter.RunPath(sh, path, args, env)
}

// Exec is that of Interpreter.
func (sh *Shell) Exec(args []string) int { return sh.Session.Interpreter.Exec(sh, args) }

// RunPending is that of Interpreter.
func (sh *Shell) RunPending() { sh.Session.Interpreter.RunPending(sh) }

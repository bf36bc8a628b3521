package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"egressd/hermetic/internal/shell/assign"
	"egressd/hermetic/internal/shell/builtin"
	"egressd/hermetic/internal/shell/expand"
	"egressd/hermetic/internal/shell/jobs"
	"egressd/hermetic/internal/shell/redirect"
	"egressd/hermetic/internal/shell/state"
	"egressd/hermetic/internal/shell/vars"
)

// declare runs declare, local, export, readonly and typeset as the parser
// recognises them: their assignments are not split.
func declare(sh *state.Shell, st *syntax.Stmt, c *syntax.DeclClause) {
	if !beforeCommand(sh) {
		return
	}
	name := c.Variant.Value
	if name == "nameref" || sh.Commands.Funcs[name] != nil || !builtin.On(sh, name) {
		call := &syntax.CallExpr{Args: []*syntax.Word{{Parts: []syntax.WordPart{c.Variant}}}}
		for _, a := range c.Args {
			call.Args = append(call.Args, assign.Word(a))
		}
		simple(sh, st, call)
		return
	}
	undo, ok := redirect.Apply(sh, st.Redirs)
	defer undo()
	if !ok {
		sh.Status = 1
		return
	}
	assign.Clause(sh, c)
}

// beforeCommand counts a command and runs the DEBUG trap. It reports false if
// the trap skips the command.
func beforeCommand(sh *state.Shell) bool {
	if sh.Session.Budget.Command() != nil {
		panic(state.Ended{Status: 126})
	}
	if _, ok := sh.Traps.Actions["DEBUG"]; ok && !sh.Traps.Inherited {
		return jobs.RunDebug(sh)
	}
	return true
}

// simple runs a simple command: expansions, redirections, assignments, then the
// call.
func simple(sh *state.Shell, st *syntax.Stmt, c *syntax.CallExpr) {
	if len(c.Args) > 0 && expandAlias(sh, st, c) {
		return
	}
	if !beforeCommand(sh) {
		return
	}
	line := sh.Line
	sh.SubstStatus = -1
	args := callArgs(sh, c)
	sh.Line = line
	if len(args) == 0 {
		assign.Only(sh, st, c)
		return
	}
	if args[0] == "exec" && builtin.On(sh, "exec") && sh.Commands.Funcs["exec"] == nil {
		execBuiltin(sh, st, c, args)
		return
	}
	undo, ok := redirect.Apply(sh, st.Redirs)
	defer func() { undo() }()
	if !ok {
		sh.Status = 1
		return
	}
	pop, ok := assign.Temporary(sh, c.Assigns)
	defer pop()
	if !ok {
		sh.Status = 1
		return
	}
	expand.TraceArgs(sh, c, args)
	call(sh, args)
	if sh.Flow == state.GoesOn || sh.Flow == state.Returns {
		sh.Params.Last = args[len(args)-1]
	}
}

// callArgs expands the words of a command. The arguments of builtin declare and
// command declare are assignments if they look like one.
func callArgs(sh *state.Shell, c *syntax.CallExpr) []string {
	if len(c.Args) == 0 {
		return nil
	}
	first := 0
	for first < len(c.Args)-1 {
		if l := c.Args[first].Lit(); l != "builtin" && l != "command" {
			break
		}
		first++
	}
	if !assign.Declares(c.Args[first].Lit()) {
		return expand.Fields(sh, c.Args)
	}
	args := expand.Fields(sh, c.Args[:first+1])
	for _, w := range c.Args[first+1:] {
		if lit, ok := expand.FirstLit(w); ok {
			if name, _, found := strings.Cut(lit, "="); found && vars.ValidName(strings.TrimSuffix(name, "+")) {
				args = append(args, expand.Value(sh, w))
				continue
			}
		}
		args = append(args, expand.Fields(sh, []*syntax.Word{w})...)
	}
	return args
}

// call runs a function, a builtin or a command.
func call(sh *state.Shell, args []string) {
	name := args[0]
	if f := sh.Commands.Funcs[name]; f != nil {
		callFunction(sh, f, args)
		return
	}
	if builtin.On(sh, name) {
		sh.Status = builtin.Run(sh, args)
		return
	}
	sh.Status = external(sh, args)
}

package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// stmts runs statements until one leaves.
func (sh *shell) stmts(list []*syntax.Stmt) {
	for _, st := range list {
		sh.stmt(st)
		if sh.flow != goesOn {
			return
		}
	}
}

// stmt runs one statement.
func (sh *shell) stmt(st *syntax.Stmt) {
	sh.check()
	if sh.on(optNoExec) {
		return
	}
	if line := st.Pos().Line(); line > 0 {
		sh.line = int(line) + sh.unitBase() + sh.lineShift
	}
	if st.Background {
		sh.background(st)
		return
	}
	if st.Coprocess || st.Disown {
		sh.discardf("syntax error near unexpected token `&'")
	}
	if st.Negated {
		sh.noErrExit++
		sh.command(st)
		sh.noErrExit--
		if sh.flow == goesOn {
			sh.status = negate(sh.status)
		}
		return
	}
	sh.command(st)
	if sh.status != 0 && sh.flow == goesOn && sh.failsShell(st.Cmd) {
		sh.failed(st)
	}
}

func negate(status int) int {
	if status == 0 {
		return 1
	}
	return 0
}

// failsShell reports whether the failure of cmd counts for set -e and the ERR
// trap here; lists have looked at their members already.
func (sh *shell) failsShell(cmd syntax.Command) bool {
	if sh.noErrExit > 0 {
		return false
	}
	switch c := cmd.(type) {
	case *syntax.BinaryCmd:
		return c.Op == syntax.Pipe || c.Op == syntax.PipeAll
	case *syntax.Block, *syntax.IfClause, *syntax.WhileClause, *syntax.ForClause, *syntax.CaseClause:
		return sh.redirFailed
	}
	return true
}

func (sh *shell) failed(st *syntax.Stmt) {
	sh.runTrap("ERR")
	if sh.on(optErrExit) && sh.flow == goesOn {
		sh.flow = exits
	}
}

// command runs what st is with its redirections.
func (sh *shell) command(st *syntax.Stmt) {
	mark := len(sh.procFDs)
	sh.redirFailed = false
	sh.current = st
	switch c := st.Cmd.(type) {
	case *syntax.CallExpr:
		sh.simple(st, c)
	case *syntax.DeclClause:
		sh.declare(st, c)
	case *syntax.FuncDecl:
		sh.define(c)
	default:
		undo, ok := sh.redirect(st.Redirs)
		if !ok {
			undo()
			sh.status, sh.redirFailed = 1, true
			break
		}
		func() {
			defer undo()
			if st.Cmd == nil {
				sh.status = 0
			} else {
				sh.compound(st.Cmd)
			}
		}()
	}
	sh.dropProcFDs(mark)
	if sh.flow == goesOn && !keepsPipeStatus(st.Cmd) {
		sh.pipeStatus = []int{sh.status}
	}
}

// keepsPipeStatus reports the commands whose members have set PIPESTATUS.
func keepsPipeStatus(cmd syntax.Command) bool {
	switch cmd.(type) {
	case *syntax.BinaryCmd, *syntax.Block, *syntax.IfClause, *syntax.WhileClause, *syntax.ForClause, *syntax.CaseClause, *syntax.TimeClause:
		return true
	}
	return false
}

func (sh *shell) compound(cmd syntax.Command) {
	switch c := cmd.(type) {
	case *syntax.Block:
		sh.stmts(c.Stmts)
	case *syntax.Subshell:
		sh.runSubshell(c)
	case *syntax.BinaryCmd:
		sh.binary(c)
	case *syntax.IfClause:
		sh.ifClause(c)
	case *syntax.WhileClause:
		sh.while(c)
	case *syntax.ForClause:
		sh.forClause(c)
	case *syntax.CaseClause:
		sh.caseClause(c)
	case *syntax.ArithmCmd:
		sh.arithCommand(c)
	case *syntax.TestClause:
		sh.testClause(c)
	case *syntax.LetClause:
		sh.letClause(c)
	case *syntax.TimeClause:
		sh.timeClause(c)
	case *syntax.CoprocClause:
		sh.coproc(c)
	default:
		sh.discardf("syntax error: this is not bash")
	}
}

func (sh *shell) runSubshell(c *syntax.Subshell) {
	sub := sh.clone()
	sh.status = sub.subshell(func() {
		sub.noErrExit = sh.noErrExit
		sub.stmts(c.Stmts)
	})
	sh.checkLimit()
	sh.check()
}

func (sh *shell) binary(c *syntax.BinaryCmd) {
	switch c.Op {
	case syntax.AndStmt, syntax.OrStmt:
		if sh.tree++; sh.tree > maxTree {
			sh.tree = 0
			sh.tooNested()
		}
		sh.noErrExit++
		sh.stmt(c.X)
		sh.noErrExit--
		sh.tree--
		if sh.flow == goesOn && (sh.status == 0) == (c.Op == syntax.AndStmt) {
			sh.stmt(c.Y)
		}
	default:
		members, both := flatten(c)
		sh.pipeline(members, both)
	}
}

// flatten lists the members of a pipeline; both tells which ends in |&.
func flatten(c *syntax.BinaryCmd) (members []*syntax.Stmt, both []bool) {
	if x, ok := c.X.Cmd.(*syntax.BinaryCmd); ok && (x.Op == syntax.Pipe || x.Op == syntax.PipeAll) && len(c.X.Redirs) == 0 && !c.X.Negated {
		members, both = flatten(x)
	} else {
		members = []*syntax.Stmt{c.X}
	}
	if y, ok := c.Y.Cmd.(*syntax.BinaryCmd); ok && (y.Op == syntax.Pipe || y.Op == syntax.PipeAll) && len(c.Y.Redirs) == 0 && !c.Y.Negated {
		m, b := flatten(y)
		return append(members, m...), append(append(both, c.Op == syntax.PipeAll), b...)
	}
	return append(members, c.Y), append(both, c.Op == syntax.PipeAll)
}

// condition runs the statements of a condition: they do not fail the shell.
func (sh *shell) condition(list []*syntax.Stmt) bool {
	sh.noErrExit++
	sh.stmts(list)
	sh.noErrExit--
	return sh.status == 0
}

func (sh *shell) ifClause(c *syntax.IfClause) {
	for ; c != nil; c = c.Else {
		if len(c.Cond) == 0 {
			sh.stmts(c.Then)
			return
		}
		yes := sh.condition(c.Cond)
		if sh.flow != goesOn {
			return
		}
		if yes {
			sh.stmts(c.Then)
			return
		}
	}
	sh.status = 0
}

func (sh *shell) arithCommand(c *syntax.ArithmCmd) {
	if !sh.beforeCommand() {
		return
	}
	text := sh.arithText(c.X)
	if sh.on(optXTrace) {
		sh.traceText("(( " + text + " ))")
	}
	n, ok := sh.arithTry("((: ", text)
	sh.status = 0
	if !ok || n == 0 {
		sh.status = 1
	}
}

func (sh *shell) letClause(c *syntax.LetClause) {
	args := []string{"let"}
	for _, x := range c.Exprs {
		if w, ok := x.(*syntax.Word); ok {
			args = append(args, sh.str(w))
			continue
		}
		if text := sh.source(x); strings.ContainsAny(text, "'\"") {
			if w := sh.parseWord(text); w != nil {
				args = append(args, sh.str(w))
				continue
			}
		}
		args = append(args, sh.arithText(x))
	}
	sh.status = sh.runBuiltin(args)
}

func (sh *shell) testClause(c *syntax.TestClause) {
	if !sh.beforeCommand() {
		return
	}
	t := tester{sh: sh}
	if sh.on(optXTrace) {
		t.trace = &strings.Builder{}
	}
	ok := t.expr(c.X)
	if t.trace != nil {
		sh.traceText("[[ " + t.trace.String() + " ]]")
	}
	switch {
	case t.failed:
		sh.status = 2
		if t.status != 0 {
			sh.status = t.status
		}
	case ok:
		sh.status = 0
	default:
		sh.status = 1
	}
}

func (sh *shell) define(c *syntax.FuncDecl) {
	if c.Name == nil {
		sh.discardf("syntax error: this is not bash")
	}
	name := c.Name.Value
	if f := sh.funcs[name]; f != nil && f.readonly {
		sh.errorf("%s: readonly function", name)
		sh.status = 1
		return
	}
	sh.funcs[name] = &function{name: name, body: c.Body, unit: sh.unit}
	sh.status = 0
}

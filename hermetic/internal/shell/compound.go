package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"egressd/hermetic/internal/shell/builtin"
	"egressd/hermetic/internal/shell/expand"
	"egressd/hermetic/internal/shell/options"
	"egressd/hermetic/internal/shell/quote"
	"egressd/hermetic/internal/shell/state"
	"egressd/hermetic/internal/shell/test"
)

// compound runs a compound command; its redirections have been made.
func compound(sh *state.Shell, cmd syntax.Command) {
	switch c := cmd.(type) {
	case *syntax.Block:
		stmts(sh, c.Stmts)
	case *syntax.Subshell:
		runSubshell(sh, c)
	case *syntax.BinaryCmd:
		list(sh, c)
	case *syntax.IfClause:
		ifClause(sh, c)
	case *syntax.WhileClause:
		whileClause(sh, c)
	case *syntax.ForClause:
		forClause(sh, c)
	case *syntax.CaseClause:
		caseClause(sh, c)
	case *syntax.ArithmCmd:
		arithCommand(sh, c)
	case *syntax.TestClause:
		testClause(sh, c)
	case *syntax.LetClause:
		letClause(sh, c)
	case *syntax.TimeClause:
		timeClause(sh, c)
	case *syntax.CoprocClause:
		coproc(sh, c)
	default:
		sh.Discardf("syntax error: this is not bash")
	}
}

// runSubshell is ( list ).
func runSubshell(sh *state.Shell, c *syntax.Subshell) {
	sub := sh.Clone()
	sh.Status = subshell(sub, func() {
		sub.NoErrExit = sh.NoErrExit
		stmts(sub, c.Stmts)
	})
	sh.CheckLimit()
	sh.Check()
}

// list is a && b, a || b, and a | b.
func list(sh *state.Shell, c *syntax.BinaryCmd) {
	switch c.Op {
	case syntax.AndStmt, syntax.OrStmt:
		if sh.Work.Tree++; sh.Work.Tree > state.MaxTree {
			sh.Work.Tree = 0
			sh.TooNested()
		}
		sh.NoErrExit++
		stmt(sh, c.X)
		sh.NoErrExit--
		sh.Work.Tree--
		if sh.Flow == state.GoesOn && (sh.Status == 0) == (c.Op == syntax.AndStmt) {
			stmt(sh, c.Y)
		}
	default:
		members, both := flatten(c)
		pipeline(sh, members, both)
	}
}

// flatten lists the members of a pipeline. both[i] reports whether member i
// ends in |&.
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

// condition runs the statements of a condition, whose failure does not count
// for set -e.
func condition(sh *state.Shell, list []*syntax.Stmt) bool {
	sh.NoErrExit++
	stmts(sh, list)
	sh.NoErrExit--
	return sh.Status == 0
}

// ifClause is if.
func ifClause(sh *state.Shell, c *syntax.IfClause) {
	for ; c != nil; c = c.Else {
		if len(c.Cond) == 0 {
			stmts(sh, c.Then)
			return
		}
		yes := condition(sh, c.Cond)
		if sh.Flow != state.GoesOn {
			return
		}
		if yes {
			stmts(sh, c.Then)
			return
		}
	}
	sh.Status = 0
}

// arithCommand is (( )).
func arithCommand(sh *state.Shell, c *syntax.ArithmCmd) {
	if !beforeCommand(sh) {
		return
	}
	text := expand.ArithText(sh, c.X)
	if sh.Options.On(options.XTrace) {
		expand.Trace(sh, "(( "+text+" ))")
	}
	n, ok := expand.TryArith(sh, "((: ", text)
	sh.Status = 0
	if !ok || n == 0 {
		sh.Status = 1
	}
}

// letClause is let.
func letClause(sh *state.Shell, c *syntax.LetClause) {
	args := []string{"let"}
	for _, x := range c.Exprs {
		if w, ok := x.(*syntax.Word); ok {
			args = append(args, expand.String(sh, w))
			continue
		}
		if text := sh.Source(x); strings.ContainsAny(text, "'\"") {
			if w := expand.ParseWord(sh, text); w != nil {
				args = append(args, expand.String(sh, w))
				continue
			}
		}
		args = append(args, expand.ArithText(sh, x))
	}
	sh.Status = builtin.Run(sh, args)
}

// testClause is [[ ]].
func testClause(sh *state.Shell, c *syntax.TestClause) {
	if !beforeCommand(sh) {
		return
	}
	sh.Status = test.Evaluate(sh, c.X)
}

// caseClause is case.
func caseClause(sh *state.Shell, c *syntax.CaseClause) {
	word := expand.String(sh, c.Word)
	if sh.Options.On(options.XTrace) {
		expand.Trace(sh, "case "+quote.IfNeeded(word)+" in")
	}
	through, matched := false, false
	for _, item := range c.Items {
		if !through && !caseMatches(sh, item, word) {
			continue
		}
		matched = true
		if len(item.Stmts) == 0 {
			sh.Status = 0
		}
		stmts(sh, item.Stmts)
		if sh.Flow != state.GoesOn {
			return
		}
		switch item.Op {
		case syntax.Fallthrough:
			through = true
		case syntax.Resume:
			through = false
		default:
			return
		}
	}
	if !matched {
		sh.Status = 0
	}
}

// caseMatches reports whether a pattern of item matches word.
func caseMatches(sh *state.Shell, item *syntax.CaseItem, word string) bool {
	for _, p := range item.Patterns {
		if expand.Compile(sh, expand.Pattern(sh, p), sh.Options.Shopt["nocasematch"]).Match(word) {
			return true
		}
	}
	return false
}

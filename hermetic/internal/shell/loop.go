package shell

import (
	"mvdan.cc/sh/v3/syntax"

	"egressd/hermetic/internal/shell/expand"
	"egressd/hermetic/internal/shell/options"
	"egressd/hermetic/internal/shell/state"
	"egressd/hermetic/internal/shell/vars"
)

// turn runs the body of a loop once; false if the loop is over.
func turn(sh *state.Shell, body []*syntax.Stmt) bool {
	if sh.Session.Budget.Loop() != nil {
		panic(state.Ended{Status: 126})
	}
	stmts(sh, body)
	return loopGoesOn(sh)
}

// loopGoesOn handles break and continue; false if the loop is over.
func loopGoesOn(sh *state.Shell) bool {
	switch sh.Flow {
	case state.Breaks:
		if sh.Levels--; sh.Levels == 0 {
			sh.Flow = state.GoesOn
		}
		return false
	case state.Continues:
		if sh.Levels--; sh.Levels > 0 {
			return false
		}
		sh.Flow = state.GoesOn
		return true
	}
	return sh.Flow == state.GoesOn
}

// whileClause is while and until.
func whileClause(sh *state.Shell, c *syntax.WhileClause) {
	sh.Loops++
	defer func() { sh.Loops-- }()
	last := 0
	for {
		yes := condition(sh, c.Cond)
		if sh.Flow != state.GoesOn {
			if !loopGoesOn(sh) {
				return
			}
			continue
		}
		if yes == c.Until {
			break
		}
		goesOn := turn(sh, c.Do)
		last = sh.Status
		if !goesOn {
			return
		}
	}
	sh.Status = last
}

// forClause is for and select.
func forClause(sh *state.Shell, c *syntax.ForClause) {
	sh.Loops++
	defer func() { sh.Loops-- }()
	switch l := c.Loop.(type) {
	case *syntax.CStyleLoop:
		forArith(sh, c, l)
	case *syntax.WordIter:
		items := sh.Params.List
		if l.InPos.IsValid() {
			items = expand.Fields(sh, l.Items)
		}
		if c.Select {
			selectLoop(sh, c, l.Name.Value, items)
			return
		}
		line := sh.Line
		if len(items) == 0 {
			sh.Status = 0
		}
		for _, item := range items {
			sh.Line = line
			if !beforeCommand(sh) {
				continue
			}
			if sh.Options.On(options.XTrace) {
				expand.Trace(sh, "for "+l.Name.Value+" in "+sh.SourceWords(l.Items))
			}
			if v := sh.Vars.Raw(l.Name.Value); v != nil && v.Ref && !v.Readonly && vars.ValidName(item) {
				v.Str, v.IsSet = item, true // a nameref is set to the name: nothing is assigned through it
			} else if !sh.Vars.Set(l.Name.Value, item) {
				sh.Status = 1
				return
			}
			if !turn(sh, c.Do) {
				return
			}
		}
	}
}

// forArith is for (( )).
func forArith(sh *state.Shell, c *syntax.ForClause, l *syntax.CStyleLoop) {
	eval := func(x syntax.ArithmExpr, none int64) (int64, bool) {
		if x == nil {
			return none, true
		}
		text := expand.ArithText(sh, x)
		if sh.Options.On(options.XTrace) {
			expand.Trace(sh, "(( "+text+" ))")
		}
		return expand.TryArith(sh, "((: ", text)
	}
	if _, ok := eval(l.Init, 0); !ok {
		sh.Status = 1
		return
	}
	sh.Status = 0
	for {
		n, ok := eval(l.Cond, 1)
		if !ok {
			sh.Status = 1
			return
		}
		if n == 0 || !turn(sh, c.Do) {
			return
		}
		if _, ok := eval(l.Post, 0); !ok {
			sh.Status = 1
			return
		}
	}
}

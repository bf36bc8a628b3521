package shell

import (
	"mvdan.cc/sh/v3/syntax"
)

// turn runs one turn of a loop; false: the loop is over.
func (sh *shell) turn(body []*syntax.Stmt) bool {
	if sh.ses.Budget.Loop() != nil {
		panic(ended{126})
	}
	sh.stmts(body)
	return sh.loopGoesOn()
}

func (sh *shell) loopGoesOn() bool {
	switch sh.flow {
	case breaks:
		if sh.levels--; sh.levels == 0 {
			sh.flow = goesOn
		}
		return false
	case continues:
		if sh.levels--; sh.levels > 0 {
			return false
		}
		sh.flow = goesOn
		return true
	}
	return sh.flow == goesOn
}

func (sh *shell) while(c *syntax.WhileClause) {
	sh.loops++
	defer func() { sh.loops-- }()
	last := 0
	for {
		yes := sh.condition(c.Cond)
		if sh.flow != goesOn {
			if !sh.loopGoesOn() {
				return
			}
			continue
		}
		if yes == c.Until {
			break
		}
		goesOn := sh.turn(c.Do)
		last = sh.status
		if !goesOn {
			return
		}
	}
	sh.status = last
}

func (sh *shell) forClause(c *syntax.ForClause) {
	sh.loops++
	defer func() { sh.loops-- }()
	switch l := c.Loop.(type) {
	case *syntax.CStyleLoop:
		sh.forArith(c, l)
	case *syntax.WordIter:
		items := sh.params
		if l.InPos.IsValid() {
			items = sh.fields(l.Items)
		}
		if c.Select {
			sh.selectLoop(c, l.Name.Value, items)
			return
		}
		line := sh.line
		if len(items) == 0 {
			sh.status = 0
		}
		for _, item := range items {
			sh.line = line
			if !sh.beforeCommand() {
				continue
			}
			if sh.on(optXTrace) {
				sh.traceText("for " + l.Name.Value + " in " + sh.sourceWords(l.Items))
			}
			if v := sh.raw(l.Name.Value); v != nil && v.ref && !v.readonly && validName(item) {
				v.str, v.isSet = item, true // the loop names, it does not assign
			} else if !sh.setString(l.Name.Value, item) {
				sh.status = 1
				return
			}
			if !sh.turn(c.Do) {
				return
			}
		}
	}
}

func (sh *shell) forArith(c *syntax.ForClause, l *syntax.CStyleLoop) {
	eval := func(x syntax.ArithmExpr, none int64) (int64, bool) {
		if x == nil {
			return none, true
		}
		text := sh.arithText(x)
		if sh.on(optXTrace) {
			sh.traceText("(( " + text + " ))")
		}
		return sh.arithTry("((: ", text)
	}
	if _, ok := eval(l.Init, 0); !ok {
		sh.status = 1
		return
	}
	sh.status = 0
	for {
		n, ok := eval(l.Cond, 1)
		if !ok {
			sh.status = 1
			return
		}
		if n == 0 || !sh.turn(c.Do) {
			return
		}
		if _, ok := eval(l.Post, 0); !ok {
			sh.status = 1
			return
		}
	}
}

func (sh *shell) caseClause(c *syntax.CaseClause) {
	word := sh.str(c.Word)
	if sh.on(optXTrace) {
		sh.traceText("case " + quoteIfNeeded(word) + " in")
	}
	through, matched := false, false
	for _, item := range c.Items {
		if !through && !sh.caseMatches(item, word) {
			continue
		}
		matched = true
		if len(item.Stmts) == 0 {
			sh.status = 0
		}
		sh.stmts(item.Stmts)
		if sh.flow != goesOn {
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
		sh.status = 0
	}
}

func (sh *shell) caseMatches(item *syntax.CaseItem, word string) bool {
	for _, p := range item.Patterns {
		if sh.compile(sh.patternOf(p), sh.shopts["nocasematch"]).Match(word) {
			return true
		}
	}
	return false
}

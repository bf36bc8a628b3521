// Package assign gives variables their values: assignments, arrays, declare and
// its relatives (local, export, readonly, typeset), and unset.
//
//	ok := assign.Apply(sh, a)                     // name=value, name[i]=value, name=(...)
//	pop, ok := assign.Temporary(sh, call.Assigns) // name=value command
//	assign.Clause(sh, clause)                     // declare -i n=1
//	status := assign.Unset(sh, []string{"unset", "name"})
//
// It reads the syntax and expands the words. Package vars keeps the variables.
package assign

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"egressd/hermetic/internal/shell/expand"
	"egressd/hermetic/internal/shell/options"
	"egressd/hermetic/internal/shell/quote"
	"egressd/hermetic/internal/shell/redirect"
	"egressd/hermetic/internal/shell/state"
	"egressd/hermetic/internal/shell/vars"
)

// Only runs a command that consists of assignments and redirections.
func Only(sh *state.Shell, st *syntax.Stmt, c *syntax.CallExpr) {
	undo, ok := redirect.Apply(sh, st.Redirs)
	undo()
	if !ok {
		sh.Status = 1
		return
	}
	for _, a := range c.Assigns {
		if !Apply(sh, a) {
			panic(state.Discard{Status: 1})
		}
	}
	if sh.SubstStatus >= 0 {
		sh.Status = sh.SubstStatus
		return
	}
	sh.Status = 0
}

// Apply makes one assignment. It reports false after a message.
func Apply(sh *state.Shell, a *syntax.Assign) bool {
	name := a.Name.Value
	if a.Array != nil {
		return array(sh, target(sh, name), name, a)
	}
	if a.Index != nil {
		index := expand.Subscript(sh, name, a.Index)
		val := expand.Value(sh, a.Value)
		if sh.Options.On(options.XTrace) {
			expand.Trace(sh, name+"["+index+"]"+equals(a)+quote.IfNeeded(val))
		}
		if strings.TrimSpace(index) == "" {
			sh.Discardf("%s[%s]: bad array subscript", name, index)
		}
		return sh.Vars.SetElement(name, index, val, a.Append)
	}
	val := expand.Value(sh, a.Value)
	if sh.Options.On(options.XTrace) {
		expand.Trace(sh, name+equals(a)+quote.IfNeeded(val))
	}
	if !a.Append {
		return sh.Vars.Set(name, val)
	}
	name = sh.Vars.Resolve(name)
	if base, index, ok := vars.SplitSubscript(name); ok {
		return sh.Vars.SetElement(base, index, val, true)
	}
	return sh.Vars.Assign(sh.Vars.Target(name), name, val, true)
}

// equals is the operator of an assignment.
func equals(a *syntax.Assign) string {
	if a.Append {
		return "+="
	}
	return "="
}

// target is the variable that name is assigned to.
func target(sh *state.Shell, name string) *vars.Variable {
	return sh.Vars.Target(sh.Vars.Resolve(name))
}

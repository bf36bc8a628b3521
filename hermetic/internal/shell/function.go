package shell

import (
	"mvdan.cc/sh/v3/syntax"

	"egressd/hermetic/internal/shell/jobs"
	"egressd/hermetic/internal/shell/options"
	"egressd/hermetic/internal/shell/state"
	"egressd/hermetic/internal/shell/vars"
)

// define is a function definition.
func define(sh *state.Shell, c *syntax.FuncDecl) {
	if c.Name == nil {
		sh.Discardf("syntax error: this is not bash")
	}
	name := c.Name.Value
	if f := sh.Commands.Funcs[name]; f != nil && f.Readonly {
		sh.Errorf("%s: readonly function", name)
		sh.Status = 1
		return
	}
	sh.Commands.Funcs[name] = &state.Function{Name: name, Body: c.Body, Unit: sh.Unit}
	sh.Status = 0
}

// callFunction runs a function in its own scope.
func callFunction(sh *state.Shell, f *state.Function, args []string) {
	sh.Deeper()
	s := &vars.Scope{Vars: map[string]*vars.Variable{}, Prev: sh.Vars.Scope}
	oldScope, oldParams, oldLoops, oldUnit, oldLine := sh.Vars.Scope, sh.Params.List, sh.Loops, sh.Unit, sh.Line
	oldOpts, oldCurrent := sh.Options.Flags, sh.Current
	sh.Vars.Scope, sh.Params.List, sh.Loops = s, args[1:], 0
	sh.Frames = append(sh.Frames, state.Frame{Name: f.Name, Source: f.Unit.Name, CallLine: sh.Line, Function: true})
	sh.Unit = f.Unit
	debug, hadDebug := sh.Traps.Actions["DEBUG"]
	if hadDebug && !f.Traced && !sh.Options.On(options.FuncTrace) {
		delete(sh.Traps.Actions, "DEBUG")
	}
	errTrap, hadErr := sh.Traps.Actions["ERR"]
	if hadErr && !sh.Options.On(options.ErrTrace) {
		delete(sh.Traps.Actions, "ERR")
	}
	retTrap, hadRet := sh.Traps.Actions["RETURN"]
	if hadRet && !f.Traced && !sh.Options.On(options.FuncTrace) {
		delete(sh.Traps.Actions, "RETURN")
	}
	back := func() {
		restore(sh.Traps.Actions, "DEBUG", debug, hadDebug)
		restore(sh.Traps.Actions, "ERR", errTrap, hadErr)
		restore(sh.Traps.Actions, "RETURN", retTrap, hadRet)
		if s.Opts {
			sh.Options.Flags = oldOpts
		}
		sh.Frames = sh.Frames[:len(sh.Frames)-1]
		for _, v := range s.Vars {
			sh.Work.Held -= v.Size()
		}
		sh.Vars.Scope, sh.Params.List, sh.Loops, sh.Unit, sh.Line, sh.Current = oldScope, oldParams, oldLoops, oldUnit, oldLine, oldCurrent
		sh.Work.Calls--
	}
	defer back()
	runCommand(sh, f.Body)
	if sh.Status != 0 && sh.Flow == state.GoesOn && failsShell(sh, f.Body.Cmd) {
		failed(sh, f.Body)
	}
	if sh.Flow == state.Returns {
		sh.Flow = state.GoesOn
	}
	if sh.Flow == state.GoesOn {
		jobs.RunTrap(sh, "RETURN")
	}
}

// restore brings back a trap that was hidden from a function, unless the
// function set its own.
func restore(traps map[string]string, name, action string, had bool) {
	if _, now := traps[name]; had && !now {
		traps[name] = action
	}
}

package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// beforeCommand counts a command and runs the DEBUG trap; false: the trap says
// to leave the command out.
func (sh *shell) beforeCommand() bool {
	if sh.ses.Budget.Command() != nil {
		panic(ended{126})
	}
	if _, ok := sh.traps["DEBUG"]; ok && !sh.inherits {
		return sh.debugTrap()
	}
	return true
}

// simple runs a simple command: expansions, redirections, assignments, call.
func (sh *shell) simple(st *syntax.Stmt, c *syntax.CallExpr) {
	if len(c.Args) > 0 && sh.expandAlias(st, c) {
		return
	}
	if !sh.beforeCommand() {
		return
	}
	line := sh.line
	sh.substEnded = -1
	args := sh.callArgs(c)
	sh.line = line
	if len(args) == 0 {
		sh.assignments(st, c)
		return
	}
	if args[0] == "exec" && sh.builtinOn("exec") && sh.funcs["exec"] == nil {
		sh.execBuiltin(st, c, args)
		return
	}
	undo, ok := sh.redirect(st.Redirs)
	defer func() { undo() }()
	if !ok {
		sh.status = 1
		return
	}
	pop, ok := sh.tempAssign(c.Assigns)
	defer pop()
	if !ok {
		sh.status = 1
		return
	}
	sh.traceArgs(c, args)
	sh.call(args)
	if sh.flow == goesOn || sh.flow == returns {
		sh.lastArg = args[len(args)-1]
	}
}

// callArgs expands the words of a command; those of declare and its like, when
// they are called by another way, are assignments where they look so.
func (sh *shell) callArgs(c *syntax.CallExpr) []string {
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
	if !declares(c.Args[first].Lit()) {
		return sh.fields(c.Args)
	}
	args := sh.fields(c.Args[:first+1])
	for _, w := range c.Args[first+1:] {
		if lit, ok := firstLit(w); ok {
			if name, _, found := strings.Cut(lit, "="); found && validName(strings.TrimSuffix(name, "+")) {
				args = append(args, sh.assigned(w))
				continue
			}
		}
		args = append(args, sh.fields([]*syntax.Word{w})...)
	}
	return args
}

func firstLit(w *syntax.Word) (string, bool) {
	if len(w.Parts) == 0 {
		return "", false
	}
	lit, ok := w.Parts[0].(*syntax.Lit)
	if !ok {
		return "", false
	}
	return lit.Value, true
}

func declares(name string) bool {
	switch name {
	case "declare", "typeset", "local", "export", "readonly":
		return true
	}
	return false
}

// assignments runs a command of assignments and redirections alone.
func (sh *shell) assignments(st *syntax.Stmt, c *syntax.CallExpr) {
	undo, ok := sh.redirect(st.Redirs)
	undo()
	if !ok {
		sh.status = 1
		return
	}
	for _, a := range c.Assigns {
		if !sh.assign(a) {
			panic(discard{1})
		}
	}
	if sh.substEnded >= 0 {
		sh.status = sh.substEnded
		return
	}
	sh.status = 0
}

// assign does one assignment.
func (sh *shell) assign(a *syntax.Assign) bool {
	name := a.Name.Value
	if a.Array != nil {
		return sh.assignArray(sh.arrayTarget(name), name, a)
	}
	if a.Index != nil {
		index := sh.subscript(name, a.Index)
		val := sh.assigned(a.Value)
		if sh.on(optXTrace) {
			sh.traceText(name + "[" + index + "]" + equals(a) + quoteIfNeeded(val))
		}
		if strings.TrimSpace(index) == "" {
			sh.discardf("%s[%s]: bad array subscript", name, index)
		}
		return sh.setElement(name, index, val, a.Append)
	}
	val := sh.assigned(a.Value)
	if sh.on(optXTrace) {
		sh.traceText(name + equals(a) + quoteIfNeeded(val))
	}
	if !a.Append {
		return sh.setString(name, val)
	}
	name = sh.resolve(name)
	if base, index, ok := splitSubscript(name); ok {
		return sh.setElement(base, index, val, true)
	}
	return sh.assignTo(sh.target(name), name, val, true)
}

func equals(a *syntax.Assign) string {
	if a.Append {
		return "+="
	}
	return "="
}

func (sh *shell) arrayTarget(name string) *variable { return sh.target(sh.resolve(name)) }

// assignArray is name=(...) and name+=(...).
func (sh *shell) assignArray(v *variable, name string, a *syntax.Assign) bool {
	if v.readonly {
		sh.errorf("%s: readonly variable", name)
		return false
	}
	type pair struct {
		key     string
		val     string
		hasKey  bool
		appends bool
	}
	var pairs []pair
	isAssoc := v.kind == assocVar
	for _, e := range a.Array.Elems {
		switch {
		case e.Index != nil:
			key := ""
			if isAssoc {
				key = sh.keyText(e.Index)
			} else {
				key = sh.subscript(name, e.Index)
			}
			pairs = append(pairs, pair{key: key, val: sh.assigned(e.Value), hasKey: true})
		default:
			if w, key, appends, ok := sh.keyedWord(e.Value); ok {
				pairs = append(pairs, pair{key: key, val: sh.assigned(w), hasKey: true, appends: appends})
				continue
			}
			for _, f := range sh.fields([]*syntax.Word{e.Value}) {
				pairs = append(pairs, pair{val: f})
			}
		}
		sh.checkArray(len(pairs))
	}
	if sh.on(optXTrace) {
		sh.traceText(name + equals(a) + sh.source(a.Array))
	}
	if !a.Append {
		sh.grow(-v.size(), 0)
		v.str, v.list, v.pairs, v.shared = "", nil, nil, false
		if isAssoc {
			v.pairs = newAssoc()
		} else {
			v.kind, v.list = indexedVar, &indexed{}
		}
	}
	if !isAssoc {
		sh.toIndexed(v)
	}
	v.isSet = true
	if isAssoc {
		for i := 0; i < len(pairs); i++ {
			p := pairs[i]
			if !p.hasKey { // A=(k v k v)
				key := p.val
				p.key, p.val = key, ""
				if i+1 < len(pairs) {
					i++
					p.val = pairs[i].val
				}
			}
			if !sh.setElementOf(v, name, p.key, p.val, p.appends) {
				return false
			}
		}
		return true
	}
	sh.toIndexed(v)
	next := v.list.next()
	for _, p := range pairs {
		if p.hasKey {
			at, ok := sh.indexOf(v, name, p.key)
			if !ok {
				return false
			}
			next = at
		}
		if !sh.setElementOf(v, name, itoa(next), p.val, p.appends) {
			return false
		}
		next++
	}
	if sh.on(optAllExport) {
		v.exported = true
	}
	return true
}

// tempAssign makes the assignments before a command, for it alone; pop takes
// them off.
func (sh *shell) tempAssign(assigns []*syntax.Assign) (pop func(), ok bool) {
	if len(assigns) == 0 {
		return func() {}, true
	}
	s := &scope{vars: map[string]*variable{}, prev: sh.scope, temp: true}
	var fresh []*variable
	var names []string
	for _, a := range assigns {
		name := sh.resolve(a.Name.Value)
		if v := sh.raw(name); v != nil && v.readonly {
			sh.errorf("%s: readonly variable", name)
			return func() {}, false
		}
		val := sh.assigned(a.Value)
		v := &variable{exported: true}
		if old := sh.raw(name); old != nil {
			v.integer, v.lower, v.upper = old.integer, old.lower, old.upper
		}
		if a.Append {
			val = sh.shaped(v, sh.get(name), val, true)
		} else {
			val = sh.shaped(v, "", val, false)
		}
		if sh.on(optXTrace) {
			sh.traceText(name + equals(a) + quoteIfNeeded(val))
		}
		v.str, v.isSet = val, true
		fresh, names = append(fresh, v), append(names, name)
		s.vars[name] = v
		if len(fresh) == 1 {
			sh.scope = s // the next one sees it
		}
	}
	for _, n := range names {
		sh.wasSet(n)
	}
	return func() {
		for t := &sh.scope; *t != nil; t = &(*t).prev {
			if *t == s {
				*t = s.prev
				break
			}
		}
	}, true
}

// call runs args: a function, a builtin or a command.
func (sh *shell) call(args []string) {
	name := args[0]
	if f := sh.funcs[name]; f != nil {
		sh.callFunction(f, args)
		return
	}
	if sh.builtinOn(name) {
		sh.status = sh.runBuiltin(args)
		return
	}
	sh.status = sh.external(args)
}

// callFunction runs a function in a scope of its own.
func (sh *shell) callFunction(f *function, args []string) {
	sh.deeper()
	s := &scope{vars: map[string]*variable{}, prev: sh.scope}
	oldScope, oldParams, oldLoops, oldUnit, oldLine := sh.scope, sh.params, sh.loops, sh.unit, sh.line
	oldOpts, oldCurrent := sh.opts, sh.current
	sh.scope, sh.params, sh.loops = s, args[1:], 0
	sh.frames = append(sh.frames, frame{name: f.name, source: f.unit.name, callLine: sh.line, function: true, params: args[1:]})
	sh.unit = f.unit
	debug, hadDebug := sh.traps["DEBUG"]
	if hadDebug && !f.traced && !sh.on(optFuncTrace) {
		delete(sh.traps, "DEBUG")
	}
	errTrap, hadErr := sh.traps["ERR"]
	if hadErr && !sh.on(optErrTrace) {
		delete(sh.traps, "ERR")
	}
	retTrap, hadRet := sh.traps["RETURN"]
	if hadRet && !f.traced && !sh.on(optFuncTrace) {
		delete(sh.traps, "RETURN")
	}
	back := func() {
		restore(sh.traps, "DEBUG", debug, hadDebug)
		restore(sh.traps, "ERR", errTrap, hadErr)
		restore(sh.traps, "RETURN", retTrap, hadRet)
		if s.opts != "" {
			sh.opts = oldOpts
		}
		sh.frames = sh.frames[:len(sh.frames)-1]
		for _, v := range s.vars {
			sh.held -= v.size()
		}
		sh.scope, sh.params, sh.loops, sh.unit, sh.line, sh.current = oldScope, oldParams, oldLoops, oldUnit, oldLine, oldCurrent
		sh.depth--
	}
	defer back()
	sh.command(f.body)
	if sh.status != 0 && sh.flow == goesOn && sh.failsShell(f.body.Cmd) {
		sh.failed(f.body)
	}
	if sh.flow == returns {
		sh.flow = goesOn
	}
	if sh.flow == goesOn {
		sh.runTrap("RETURN")
	}
}

// restore puts a trap back that a function did not see, unless the function
// set one of its own.
func restore(traps map[string]string, name, action string, had bool) {
	if _, now := traps[name]; had && !now {
		traps[name] = action
	}
}

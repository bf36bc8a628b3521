package shell

import (
	"slices"
	"strconv"
	"strings"

	"egressd/hermetic/command"
)

func builtinShift(sh *shell, args []string) int {
	n := 1
	if len(args) > 1 {
		m, err := strconv.Atoi(args[1])
		if err != nil {
			sh.errorf("shift: %s: numeric argument required", args[1])
			return 1
		}
		if len(args) > 2 {
			sh.errorf("shift: too many arguments")
			return 1
		}
		n = m
	}
	if n < 0 {
		sh.errorf("shift: %s: shift count out of range", args[1])
		return 1
	}
	if n > len(sh.params) {
		if sh.shopts["shift_verbose"] {
			sh.errorf("shift: %d: shift count out of range", n)
		}
		return 1
	}
	sh.params = slices.Clone(sh.params[n:])
	return 0
}

func builtinEval(sh *shell, args []string) int {
	args = args[1:]
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	text := strings.Join(args, " ")
	if strings.TrimSpace(text) == "" {
		return 0
	}
	line := sh.line
	if sh.current != nil { // lines count from the last of the command
		sh.line = max(line, int(sh.current.End().Line())+sh.unitBase()+sh.lineShift)
	}
	sh.evalText(text)
	sh.line = line
	return sh.status
}

func builtinSource(sh *shell, args []string) int {
	if len(args) > 1 && args[1] == "--" {
		args = append(args[:1:1], args[2:]...)
	}
	if len(args) < 2 {
		sh.errorf("%s: filename argument required", args[0])
		sh.errText(args[0] + ": usage: " + args[0] + " filename [arguments]\n")
		return 2
	}
	name := args[1]
	full := join(sh.dir, name)
	if strings.IndexByte(name, '/') < 0 {
		for _, d := range strings.Split(sh.get("PATH"), ":") {
			p := join(join(sh.dir, d), name)
			if info, err := sh.ses.FS.Stat(p); err == nil && info.Mode().IsRegular() {
				full = p
				break
			}
		}
	}
	if info, err := sh.stat(full); err == nil && info.IsDir() {
		sh.errorf("%s: %s: is a directory", args[0], name)
		return 1
	}
	text, err := sh.readAll(full)
	if err != nil {
		sh.errorf("%s: %s", name, command.Reason(err))
		if sh.run.posix {
			sh.flow = exits
		}
		return 1
	}
	if binary(text) {
		sh.errorf("source: %s: cannot execute binary file", name)
		return 126
	}
	sh.sourceText(name, text, args[2:])
	return sh.status
}

func (sh *shell) sourceText(name, text string, params []string) {
	sh.deeper()
	old, line := sh.params, sh.line
	if len(params) > 0 {
		sh.params, sh.paramsSet = params, false
	}
	sh.frames = append(sh.frames, frame{name: "source", source: name, callLine: sh.line})
	defer func() {
		sh.frames = sh.frames[:len(sh.frames)-1]
		if len(params) > 0 && !sh.paramsSet { // what set gave stays
			sh.params = old
		}
		sh.line = line
		sh.depth--
	}()
	sh.status = 0
	sh.runText(text, name)
	if sh.flow == returns {
		sh.flow = goesOn
	}
	if sh.flow == goesOn {
		sh.runTrap("RETURN")
	}
}

func builtinExit(sh *shell, args []string) int {
	status, ok := sh.leaveStatus(args)
	if !ok {
		return status
	}
	sh.flow = exits
	return status
}

// leaveStatus is the argument of exit and return.
func (sh *shell) leaveStatus(args []string) (int, bool) {
	if len(args) > 1 && args[1] == "--" {
		args = append(args[:1:1], args[2:]...)
	}
	if len(args) < 2 {
		return sh.status, true
	}
	n, ok := integer(args[1])
	if !ok {
		sh.errorf("%s: %s: numeric argument required", args[0], args[1])
		return 2, true
	}
	if len(args) > 2 {
		sh.errorf("%s: too many arguments", args[0])
		return 1, false
	}
	return int(n & 255), true
}

func builtinReturn(sh *shell, args []string) int {
	if len(sh.frames) == 0 {
		sh.errorf("return: can only `return' from a function or sourced script")
		return 2
	}
	status, ok := sh.leaveStatus(args)
	if ok {
		sh.flow = returns
	}
	return status
}

func builtinBreak(sh *shell, args []string) int {
	n := int64(1)
	if len(args) > 1 {
		m, ok := integer(args[1])
		if !ok {
			sh.errorf("%s: %s: numeric argument required", args[0], args[1])
			sh.flow = exits
			return 128
		}
		if len(args) > 2 {
			sh.errorf("%s: too many arguments", args[0])
			panic(discard{1})
		}
		n = m
	}
	if sh.loops == 0 {
		sh.errorf("%s: only meaningful in a `for', `while', or `until' loop", args[0])
		return 0
	}
	if n <= 0 {
		sh.errorf("%s: %s: loop count out of range", args[0], args[1])
		sh.flow, sh.levels = breaks, sh.loops
		return 1
	}
	sh.flow, sh.levels = breaks, int(min(n, int64(sh.loops)))
	if args[0] == "continue" {
		sh.flow = continues
	}
	return 0
}

func builtinLet(sh *shell, args []string) int {
	if len(args) < 2 {
		sh.errorf("let: expression expected")
		return 1
	}
	n := int64(0)
	for _, a := range args[1:] {
		var ok bool
		if n, ok = sh.arithTry("let: ", a); !ok {
			return 1
		}
	}
	if n == 0 {
		return 1
	}
	return 0
}

package shell

import (
	"slices"
	"strconv"
	"strings"
)

// signals by number, as kill -l lists them; 0 is EXIT.
func signalNames() []string {
	return []string{
		"EXIT", "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE", "ALRM", "TERM",
		"STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ", "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS",
	}
}

func signalName(n int) string {
	names := signalNames()
	switch {
	case n >= 0 && n < len(names):
		return names[n]
	case n >= 34 && n <= 49:
		return "RTMIN" + map[bool]string{true: "", false: "+" + strconv.Itoa(n-34)}[n == 34]
	case n >= 50 && n <= 64:
		return "RTMAX" + map[bool]string{true: "", false: "-" + strconv.Itoa(64-n)}[n == 64]
	}
	return ""
}

// signalNumber is that of a name, with or without SIG; -1: none.
func signalNumber(s string) int {
	if n, err := strconv.Atoi(s); err == nil {
		if signalName(n) == "" {
			return -1
		}
		return n
	}
	s = strings.TrimPrefix(strings.ToUpper(s), "SIG")
	for n := 0; n <= 64; n++ {
		if name := signalName(n); name != "" && name == s {
			return n
		}
	}
	return -1
}

// trapName is the name that traps are kept under; "" for what is no signal.
func trapName(s string) string {
	switch up := strings.ToUpper(s); up {
	case "ERR", "DEBUG", "RETURN", "EXIT":
		return up
	}
	if n := signalNumber(s); n >= 0 {
		return signalName(n)
	}
	return ""
}

func builtinTrap(sh *shell, args []string) int {
	args = args[1:]
	if len(args) > 0 && args[0] == "-l" {
		return builtinKill(sh, []string{"kill", "-l"})
	}
	print := false
	if len(args) > 0 && args[0] == "-p" {
		print, args = true, args[1:]
	}
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		sh.errorf("trap: %s: invalid option", args[0])
		sh.errText("trap: usage: trap [-lp] [[arg] signal_spec ...]\n")
		return 2
	}
	if len(args) == 0 || print {
		return sh.printTraps(args)
	}
	action, names := args[0], args[1:]
	reset := action == "-"
	if len(args) == 1 {
		if trapName(action) == "" {
			sh.errText(sh.prefix() + "trap: usage: trap [-lp] [[arg] signal_spec ...]\n")
			return 2
		}
		reset, names = true, args
	} else if _, err := strconv.Atoi(action); err == nil && trapName(action) != "" {
		reset, names = true, args
	}
	if sh.inherits {
		sh.ownTraps()
	}
	status := 0
	for _, s := range names {
		name := trapName(s)
		switch {
		case name == "":
			sh.errorf("trap: %s: invalid signal specification", s)
			status = 1
		case reset:
			delete(sh.traps, name)
		default:
			sh.traps[name] = action
		}
	}
	sh.tellTraps()
	return status
}

// ownTraps forgets the parent's traps, but for what it ignored.
func (sh *shell) ownTraps() {
	for name, action := range sh.traps {
		if action != "" {
			delete(sh.traps, name)
		}
	}
	sh.inherits = false
}

// tellTraps lets others see what is trapped, for kill.
func (sh *shell) tellTraps() {
	t := make(map[string]string, len(sh.traps))
	for k, v := range sh.traps {
		if v == "" || !sh.inherits {
			t[k] = v
		}
	}
	sh.proc.trapped.Store(&t)
}

func (sh *shell) printTraps(which []string) int {
	status := 0
	var names []string
	for _, w := range which {
		n := trapName(w)
		if n == "" {
			sh.errorf("trap: %s: invalid signal specification", w)
			status = 1
			continue
		}
		names = append(names, n)
	}
	if len(which) == 0 {
		for n := 0; n <= 64; n++ {
			if s := signalName(n); s != "" {
				names = append(names, s)
			}
		}
		names = append(names, "DEBUG", "ERR", "RETURN")
	}
	for _, n := range names {
		action, ok := sh.traps[n]
		if !ok {
			continue
		}
		show := n
		if !slices.Contains([]string{"EXIT", "ERR", "DEBUG", "RETURN"}, n) {
			show = "SIG" + n
		}
		sh.outf("trap -- %s %s\n", quoteSingle(action), show)
	}
	return status
}

// note keeps a signal until the command at hand is done.
func (sh *shell) note(sig string) {
	if sh.pending == nil {
		sh.pending = map[string]bool{}
	}
	sh.pending[sig] = true
}

// runPending runs the traps of signals that came.
func (sh *shell) runPending() {
	sh.proc.signalled.Store(false)
	for more := true; more; {
		select {
		case sig := <-sh.proc.pending:
			sh.note(sig)
		default:
			more = false
		}
	}
	for n := 1; n <= 64 && len(sh.pending) > 0; n++ {
		name := signalName(n)
		if name != "" && sh.pending[name] {
			delete(sh.pending, name)
			sh.runTrap(name)
			if sh.flow == exits {
				panic(ended{sh.status})
			}
		}
	}
}

// runTrap runs the action of a trap; $? is kept, unless it leaves the shell.
func (sh *shell) runTrap(name string) {
	action, ok := sh.traps[name]
	if !ok || action == "" || sh.inherits && !(name == "ERR" && sh.on(optErrTrace)) && !(name == "DEBUG" && sh.on(optFuncTrace)) {
		return
	}
	if name == "ERR" || name == "DEBUG" || name == "RETURN" {
		if sh.inTrap > 0 {
			return
		}
		sh.inTrap++
		defer func() { sh.inTrap-- }()
	}
	status, pipes, line, trapped := sh.status, sh.pipeStatus, sh.line, sh.trapped
	sh.trapped = sh.commandText()
	sh.evalText(action)
	sh.trapped = trapped
	if sh.flow == goesOn {
		sh.status = status
	}
	sh.pipeStatus, sh.line = pipes, line
}

// debugTrap runs the DEBUG trap; with extdebug, its failure leaves the command
// out.
func (sh *shell) debugTrap() bool {
	if sh.inTrap > 0 {
		return true
	}
	sh.inTrap++
	status, pipes, line := sh.status, sh.pipeStatus, sh.line
	current, trapped := sh.current, sh.trapped
	sh.trapped = sh.commandText()
	sh.evalText(sh.traps["DEBUG"])
	sh.trapped = trapped
	sh.inTrap--
	trapStatus := sh.status
	if sh.flow == goesOn {
		sh.status = status
	}
	sh.pipeStatus, sh.line, sh.current = pipes, line, current
	return !sh.shopts["extdebug"] || trapStatus == 0
}

// exitTrap runs the EXIT trap at the end of a shell.
func (sh *shell) exitTrap() {
	action, ok := sh.traps["EXIT"]
	if !ok || sh.inherits || sh.ctx.Err() != nil {
		return
	}
	delete(sh.traps, "EXIT")
	if action == "" {
		return
	}
	status := sh.status
	sh.flow, sh.noErrExit, sh.loops = goesOn, 0, 0
	sh.opts &^= optErrExit
	sh.evalText(action)
	if sh.flow != exits {
		sh.status = status
	}
}

// evalText runs a text in this shell, as eval and traps do.
func (sh *shell) evalText(text string) {
	sh.deeper()
	defer func() { sh.depth-- }()
	script, _ := sh.parse(text)
	old, line := sh.unit, sh.line
	name := ""
	if old != nil {
		name = old.name
	}
	sh.unit = &unit{name: name, text: script.Text, base: line - 1}
	defer func() { sh.unit, sh.line = old, line }()
	if len(script.Lines) == 0 {
		sh.status = 0
	}
	for _, group := range script.Lines {
		sh.seeAliases()
		sh.stmts(group)
		if sh.flow != goesOn {
			return
		}
	}
	for _, w := range script.Warnings {
		sh.errorf("warning: %s", w.Text)
	}
	if m := script.Mistake; m != nil {
		for _, l := range m.Say(sh.run.arg0+": eval", line-1) {
			sh.errText(l + "\n")
		}
		sh.status = 2
		if sh.run.posix {
			sh.flow = exits
		}
	}
}

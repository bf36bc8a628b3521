package jobs

import (
	"fmt"
	"strconv"
	"strings"

	"egressd/hermetic/internal/shell/proc"
	"egressd/hermetic/internal/shell/state"
)

// Kill is the builtin kill.
func Kill(sh *state.Shell, args []string) int {
	sig := 15
	args = args[1:]
	if len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		a := args[0]
		args = args[1:]
		switch {
		case a == "-l" || a == "-L":
			return listSignals(sh, args)
		case a == "-s" || a == "-n":
			if len(args) == 0 {
				sh.Errorf("kill: %s: option requires an argument", a)
				return 1
			}
			a, args = "-"+args[0], args[1:]
			fallthrough
		case a != "--":
			if sig = proc.SignalNumber(a[1:]); sig < 0 {
				sh.Errorf("kill: %s: invalid signal specification", a[1:])
				return 1
			}
		}
	}
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		sh.ErrText("kill: usage: kill [-s sigspec | -n signum | -sigspec] pid | jobspec ... or kill -l [sigspec]\n")
		return 2
	}
	status := 0
	for _, a := range args {
		if !killOne(sh, a, sig) {
			status = 1
		}
	}
	sh.Check()
	return status
}

// killOne sends a signal to one job or process. It reports false after a
// message.
func killOne(sh *state.Shell, a string, sig int) bool {
	var p *proc.Proc
	if strings.HasPrefix(a, "%") {
		j := sh.Jobs.Find(a)
		if j == nil {
			sh.Errorf("kill: %s: no such job", a)
			return false
		}
		p = j.Proc
	} else {
		n, err := strconv.Atoi(a)
		if err != nil {
			sh.Errorf("kill: %s: arguments must be process or job IDs", a)
			return false
		}
		if n == 0 || n == -1 || n == -sh.Program.PID {
			n = sh.Program.PID
		}
		if p = sh.Session.Procs.Find(max(n, -n)); p == nil {
			sh.Errorf("kill: (%s) - No such process", a)
			return false
		}
	}
	if err := proc.Signal(p, sig); err != nil {
		sh.Errorf("kill: (%s) - %s", a, err)
		return false
	}
	return true
}

// listSignals is kill -l.
func listSignals(sh *state.Shell, args []string) int {
	if len(args) > 0 {
		status := 0
		for _, a := range args {
			n := proc.SignalNumber(a)
			if m, err := strconv.Atoi(a); err == nil && m > 128 {
				n = m - 128
			}
			switch {
			case n < 0 || proc.SignalName(n) == "":
				sh.Errorf("kill: %s: invalid signal specification", a)
				status = 1
			case a[0] >= '0' && a[0] <= '9':
				sh.Out(proc.SignalName(n) + "\n")
			default:
				sh.Outf("%d\n", n)
			}
		}
		return status
	}
	var b strings.Builder
	col := 0
	for n := 1; n <= 64; n++ {
		name := proc.SignalName(n)
		if name == "" {
			continue
		}
		fmt.Fprintf(&b, "%2d) SIG%s", n, name)
		if col++; col%5 == 0 || n == 64 {
			b.WriteByte('\n')
		} else {
			b.WriteByte('\t')
		}
	}
	sh.Out(b.String())
	return 0
}

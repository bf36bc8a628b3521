package shell

import (
	"fmt"
	"strconv"
	"strings"
)

func builtinKill(sh *shell, args []string) int {
	sig := 15
	args = args[1:]
	if len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		a := args[0]
		args = args[1:]
		switch {
		case a == "-l" || a == "-L":
			return sh.listSignals(args)
		case a == "-s" || a == "-n":
			if len(args) == 0 {
				sh.errorf("kill: %s: option requires an argument", a)
				return 1
			}
			a, args = "-"+args[0], args[1:]
			fallthrough
		case a != "--":
			if sig = signalNumber(a[1:]); sig < 0 {
				sh.errorf("kill: %s: invalid signal specification", a[1:])
				return 1
			}
		}
	}
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		sh.errText("kill: usage: kill [-s sigspec | -n signum | -sigspec] pid | jobspec ... or kill -l [sigspec]\n")
		return 2
	}
	status := 0
	for _, a := range args {
		if !sh.killOne(a, sig) {
			status = 1
		}
	}
	sh.check()
	return status
}

func (sh *shell) killOne(a string, sig int) bool {
	var p *proc
	if strings.HasPrefix(a, "%") {
		j := sh.findJob(a)
		if j == nil {
			sh.errorf("kill: %s: no such job", a)
			return false
		}
		p = j.proc
	} else {
		n, err := strconv.Atoi(a)
		if err != nil {
			sh.errorf("kill: %s: arguments must be process or job IDs", a)
			return false
		}
		if n == 0 || n == -1 || n == -sh.run.pid {
			n = sh.run.pid
		}
		if p = sh.ses.find(max(n, -n)); p == nil {
			sh.errorf("kill: (%s) - No such process", a)
			return false
		}
	}
	if err := sh.ses.signal(p, sig); err != nil {
		sh.errorf("kill: (%s) - %s", a, err)
		return false
	}
	return true
}

func (sh *shell) listSignals(args []string) int {
	if len(args) > 0 {
		status := 0
		for _, a := range args {
			n := signalNumber(a)
			if m, err := strconv.Atoi(a); err == nil && m > 128 {
				n = m - 128
			}
			switch {
			case n < 0 || signalName(n) == "":
				sh.errorf("kill: %s: invalid signal specification", a)
				status = 1
			case a[0] >= '0' && a[0] <= '9':
				sh.out(signalName(n) + "\n")
			default:
				sh.outf("%d\n", n)
			}
		}
		return status
	}
	var b strings.Builder
	col := 0
	for n := 1; n <= 64; n++ {
		name := signalName(n)
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
	sh.out(b.String())
	return 0
}

package jobs

import (
	"slices"
	"strconv"
	"strings"

	"egressd/hermetic/internal/shell/proc"
	"egressd/hermetic/internal/shell/state"
)

// Wait is the builtin wait.
func Wait(sh *state.Shell, args []string) int {
	any, place := false, ""
	args = args[1:]
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		a := args[0]
		args = args[1:]
		if a == "--" {
			break
		}
		for i := 1; i < len(a); i++ {
			switch a[i] {
			case 'n':
				any = true
			case 'f':
			case 'p':
				if len(args) == 0 {
					sh.Errorf("wait: -p: option requires an argument")
					return 2
				}
				place, args = args[0], args[1:]
			default:
				sh.Errorf("wait: -%c: invalid option", a[i])
				sh.ErrText("wait: usage: wait [-fn] [-p var] [id ...]\n")
				return 2
			}
		}
	}
	if place != "" {
		sh.Vars.Unset(place)
	}
	if any {
		return waitAny(sh, args, place)
	}
	if len(args) == 0 {
		for _, j := range slices.Clone(sh.Jobs.List) {
			if j.Foreign {
				continue
			}
			if status, interrupted := waitFor(sh, j); interrupted {
				return status
			}
		}
		sh.Jobs.List = nil
		return 0
	}
	status := 0
	for _, a := range args {
		j := sh.Jobs.Find(a)
		if j == nil {
			if strings.HasPrefix(a, "%") {
				sh.Errorf("wait: %s: no such job", a)
			} else if _, err := strconv.Atoi(a); err != nil {
				sh.Errorf("wait: `%s': not a pid or valid job spec", a)
				status = 1
				continue
			} else {
				sh.Errorf("wait: pid %s is not a child of this shell", a)
			}
			status = 127
			continue
		}
		var interrupted bool
		if status, interrupted = waitFor(sh, j); interrupted {
			return status
		}
		j.Reported = true
		if place != "" {
			sh.Vars.Set(place, strconv.Itoa(j.PID))
		}
	}
	return status
}

// waitAny is wait -n: the next job that ends.
func waitAny(sh *state.Shell, args []string, place string) int {
	var among []*proc.Job
	for _, j := range sh.Jobs.List {
		if !j.Foreign && !j.Reported && (len(args) == 0 || slices.ContainsFunc(args, func(a string) bool { return sh.Jobs.Find(a) == j })) {
			among = append(among, j)
		}
	}
	if len(among) == 0 {
		return 127
	}
	done := make(chan *proc.Job, len(among))
	stop := make(chan struct{})
	defer close(stop)
	for _, j := range among {
		if !j.Running() {
			done <- j
			break
		}
	}
	if len(done) == 0 {
		for _, j := range among {
			sh.Session.Procs.Notify(j, done, stop)
		}
	}
	select {
	case j := <-done:
		j.Reported = true
		if place != "" {
			sh.Vars.Set(place, strconv.Itoa(j.PID))
		}
		return int(j.Status.Load())
	case sig := <-sh.Proc.Pending:
		note(sh, sig)
		RunPending(sh)
		return 128 + proc.SignalNumber(sig)
	case <-sh.Ctx.Done():
		sh.Check()
	}
	return 127
}

// waitFor waits until a proc has ended; the signal of a trap ends the wait.
func waitFor(sh *state.Shell, j *proc.Job) (status int, interrupted bool) {
	select {
	case <-j.Proc.Done:
		return int(j.Status.Load()), false
	default:
	}
	for {
		select {
		case <-j.Proc.Done:
			return int(j.Status.Load()), false
		case sig := <-sh.Proc.Pending:
			note(sh, sig)
			n := proc.SignalNumber(sig)
			RunPending(sh)
			return 128 + n, true
		case <-sh.Ctx.Done():
			sh.Check()
		}
	}
}

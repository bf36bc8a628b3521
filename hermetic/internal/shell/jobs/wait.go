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
	next, place, ids, status := waitOptions(sh, args[1:])
	if status != 0 {
		return status
	}
	if place != "" {
		sh.Vars.Unset(place)
	}
	switch {
	case next:
		return waitNext(sh, ids, place)
	case len(ids) == 0:
		return waitAll(sh)
	}
	for _, id := range ids {
		var interrupted bool
		if status, interrupted = waitOne(sh, id, place); interrupted {
			return status
		}
	}
	return status
}

// waitOptions reads -n, -p and the operands.
func waitOptions(sh *state.Shell, args []string) (next bool, place string, ids []string, status int) {
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		a := args[0]
		args = args[1:]
		if a == "--" {
			break
		}
		for i := 1; i < len(a); i++ {
			switch a[i] {
			case 'n':
				next = true
			case 'f':
			case 'p':
				if len(args) == 0 {
					sh.Errorf("wait: -p: option requires an argument")
					return false, "", nil, 2
				}
				place, args = args[0], args[1:]
			default:
				sh.Errorf("wait: -%c: invalid option", a[i])
				sh.ErrText("wait: usage: wait [-fn] [-p var] [id ...]\n")
				return false, "", nil, 2
			}
		}
	}
	return next, place, args, 0
}

// waitAll waits for all jobs of this shell, and forgets them. As in bash it also
// waits for the last process substitution, if that is $!.
func waitAll(sh *state.Shell) int {
	for _, j := range slices.Clone(sh.Jobs.List) {
		if j.Foreign {
			continue
		}
		if status, interrupted := waitFor(sh, j); interrupted {
			return status
		}
	}
	if j := sh.Jobs.Substitution(); j != nil {
		if status, interrupted := waitFor(sh, j); interrupted {
			return status
		}
	}
	sh.Jobs.List = nil
	return 0
}

// waitOne waits for the job that id means, and puts its number into the
// variable place, unless that is "".
func waitOne(sh *state.Shell, id, place string) (status int, interrupted bool) {
	j := sh.Jobs.Find(id)
	if j == nil {
		_, err := strconv.Atoi(id)
		switch {
		case strings.HasPrefix(id, "%"):
			sh.Errorf("wait: %s: no such job", id)
		case err != nil:
			sh.Errorf("wait: `%s': not a pid or valid job spec", id)
			return 1, false
		default:
			sh.Errorf("wait: pid %s is not a child of this shell", id)
		}
		return 127, false
	}
	if status, interrupted = waitFor(sh, j); interrupted {
		return status, true
	}
	j.Reported = true
	if place != "" {
		sh.Vars.Set(place, strconv.Itoa(j.PID))
	}
	return status, false
}

// waitNext is wait -n: it waits for the next job that ends.
func waitNext(sh *state.Shell, ids []string, place string) int {
	var among []*proc.Job
	for _, j := range sh.Jobs.List {
		meant := len(ids) == 0 || slices.ContainsFunc(ids, func(id string) bool { return sh.Jobs.Find(id) == j })
		if meant && !j.Foreign && !j.Reported {
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

// waitFor waits until a job has ended, or a signal with a trap came.
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

// Package jobs waits for background commands, sends signals, and runs traps.
//
//	status := jobs.Wait(sh, []string{"wait", "%1"})
//	status := jobs.Kill(sh, []string{"kill", "-TERM", "2"})
//	status := jobs.Trap(sh, []string{"trap", "cleanup", "EXIT"})
//	jobs.RunPending(sh) // the traps of signals that came
//	jobs.RunTrap(sh, "ERR")
//
// A background command is started by package shell, and is a goroutine; package
// proc has its number and its signals.
package jobs

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"egressd/hermetic/internal/shell/options"
	"egressd/hermetic/internal/shell/proc"
	"egressd/hermetic/internal/shell/state"
)

// Jobs is the builtin jobs.
func Jobs(sh *state.Shell, args []string) int {
	pids, long, running := false, false, false
	var specs []string
	for _, a := range args[1:] {
		switch {
		case a == "-p":
			pids = true
		case a == "-l":
			long = true
		case a == "-r":
			running = true
		case a == "-s", a == "-n":
			return 0
		case strings.HasPrefix(a, "-"):
			sh.Errorf("jobs: %s: invalid option", a)
			sh.ErrText("jobs: usage: jobs [-lnprs] [jobspec ...] or jobs -x command [args]\n")
			return 2
		default:
			specs = append(specs, a)
		}
	}
	status := 0
	list := sh.Jobs.List
	if len(specs) > 0 {
		list = nil
		for _, s := range specs {
			j := sh.Jobs.Find(s)
			if j == nil {
				sh.Errorf("jobs: %s: no such job", s)
				status = 1
				continue
			}
			list = append(list, j)
		}
	}
	for i, j := range list {
		if running && !j.Running() || j.Reported && !j.Running() {
			continue
		}
		if pids {
			sh.Outf("%d\n", j.PID)
			continue
		}
		mark := " "
		switch i {
		case len(list) - 1:
			mark = "+"
		case len(list) - 2:
			mark = "-"
		}
		sh.Out(jobLine(j, mark, long))
	}
	return status
}

// jobLine is the line of a job; mark is + for the current job and - for the one
// before it. A job that has ended counts as reported then.
func jobLine(j *proc.Job, mark string, long bool) string {
	state, tail := "Running", " &"
	if !j.Running() {
		j.Reported = true
		state, tail = "Done", ""
		if status := j.Status.Load(); status != 0 {
			state = fmt.Sprintf("Exit %d", status)
		}
	}
	pid := ""
	if long {
		pid = strconv.Itoa(j.PID) + " "
	}
	return fmt.Sprintf("[%d]%s  %s%-24s%s%s\n", j.ID, mark, pid, state, j.Text, tail)
}

// Foreground is the builtins fg and bg.
func Foreground(sh *state.Shell, args []string) int {
	spec := "%+"
	if len(args) > 1 {
		spec = args[1]
	}
	if !sh.Options.On(options.Monitor) {
		sh.Errorf("%s: no job control", args[0])
		return 1
	}
	j := sh.Jobs.Find(spec)
	if j == nil {
		sh.Errorf("%s: %s: no such job", args[0], strings.Replace(spec, "%+", "current", 1))
		return 1
	}
	if args[0] == "bg" {
		return 0
	}
	sh.Out(j.Text + "\n")
	status, _ := waitFor(sh, j)
	return status
}

// Disown is the builtin disown.
func Disown(sh *state.Shell, args []string) int {
	if len(args) == 1 {
		args = append(args, "%+")
	}
	for _, a := range args[1:] {
		switch a {
		case "-a", "-r":
			sh.Jobs.List = nil
			return 0
		case "-h":
			continue
		}
		j := sh.Jobs.Find(a)
		if j == nil {
			sh.Errorf("disown: %s: no such job", strings.Replace(a, "%+", "current", 1))
			return 1
		}
		sh.Jobs.List = slices.DeleteFunc(slices.Clone(sh.Jobs.List), func(k *proc.Job) bool { return k == j })
	}
	return 0
}

package shell

import (
	"strconv"

	"mvdan.cc/sh/v3/syntax"

	"egressd/hermetic/internal/shell/expand"
	"egressd/hermetic/internal/shell/state"
	"egressd/hermetic/internal/shell/stream"
	"egressd/hermetic/limits"
)

// start runs do as sub in a goroutine of the session, then calls then with the
// exit status, unless it is nil.
func start(sh, sub *state.Shell, do func(), then func(status int)) {
	most := sh.Session.Budget.Limits.Jobs
	ok := sh.Session.Procs.Go(sub.Proc, most, func() {
		status := subshell(sub, do)
		if then != nil {
			then(status)
		}
	})
	if !ok {
		sub.Release()
		sh.Exceed(&limits.Exceeded{Name: "jobs", Limit: most, What: "jobs and members of pipelines ran at once"})
	}
}

// background starts st as a job.
func background(sh *state.Shell, st *syntax.Stmt) {
	sub := sh.CloneJob()
	sub.Deeper()
	sub.SetFD(0, nullInput())
	sub.Loops = 0
	sh.Jobs.Restart()
	j := sh.Jobs.Add(sub.Proc, sh.JobText(st))
	foreground := *st
	foreground.Background = false
	start(sh, sub, func() { stmt(sub, &foreground) }, j.SetStatus)
	sh.Status = 0
	sh.Jobs.Forget()
}

// coproc starts a command with a pipe to it and one from it; their descriptors
// are in NAME[0] and NAME[1].
func coproc(sh *state.Shell, c *syntax.CoprocClause) {
	name := "COPROC"
	if c.Name != nil {
		name = expand.String(sh, c.Name)
	}
	outR, outW := stream.Pipe()
	inR, inW := stream.Pipe()
	sub := sh.CloneJob()
	sub.Deeper()
	sub.SetFD(0, inR)
	sub.SetFD(1, outW)
	r, w := sh.HighFD(63), 0
	if r < 0 {
		sh.TooManyFiles()
	}
	sh.SetFD(r, outR)
	if w = sh.HighFD(60); w < 0 {
		sh.TooManyFiles()
	}
	sh.SetFD(w, inW)
	sh.Vars.SetList(name, []string{strconv.Itoa(r), strconv.Itoa(w)})
	sh.Vars.Set(name+"_PID", strconv.Itoa(sub.Proc.PID))
	j := sh.Jobs.Add(sub.Proc, sh.Source(c))
	start(sh, sub, func() { stmt(sub, c.Stmt) }, j.SetStatus)
	sh.Status = 0
}

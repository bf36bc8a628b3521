package shell

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"syscall"

	"mvdan.cc/sh/v3/syntax"

	"egressd/hermetic/limits"
)

// proc is what stands for a process: a number that kill and wait know. It is a
// goroutine at most.
type proc struct {
	pid       int
	parent    *proc
	cancel    context.CancelCauseFunc
	done      chan struct{}
	signalled atomic.Bool
	pending   chan string // signals that came, for the shell to look at
	trapped   atomic.Pointer[map[string]string]
	killed    atomic.Int32 // the signal that ended it
}

// killedBy is the cause of a context that a signal ended.
type killedBy struct{ sig int }

func (k killedBy) Error() string { return fmt.Sprintf("killed by signal %d", k.sig) }

// endStatus is the status of a shell whose context has ended.
func (p *proc) endStatus() int {
	if n := p.killed.Load(); n > 0 {
		return 128 + int(n)
	}
	return 143
}

// firstPID is $$ of the script.
const firstPID = 1

func (s *session) newProc(parent *proc, cancel context.CancelCauseFunc) *proc {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pids++
	if s.procs == nil {
		s.procs = map[int]*proc{}
	}
	p := &proc{pid: s.pids, parent: parent, cancel: cancel, done: make(chan struct{}), pending: make(chan string, 64)}
	s.procs[p.pid] = p
	return p
}

func (s *session) ended(p *proc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.procs, p.pid)
}

func (s *session) find(pid int) *proc {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.procs[pid]
}

// start runs do as sub in a goroutine of the session; then, when it is not nil,
// hears its status.
func (s *session) start(sh, sub *shell, do func(), then func(status int)) {
	s.mu.Lock()
	s.tasks++
	n := s.tasks
	s.mu.Unlock()
	if most := s.Budget.Limits.Jobs; int64(n) > most {
		s.finished()
		sub.release()
		sh.exceed(&limits.Exceeded{Name: "jobs", Limit: most, What: "jobs and members of pipelines ran at once"})
	}
	s.busy.Add(1)
	go s.body(sub, do, then)
}

func (s *session) body(sub *shell, do func(), then func(status int)) {
	defer s.busy.Done()
	defer s.finished()
	p := sub.proc
	status := sub.subshell(do)
	if then != nil {
		then(status)
	}
	close(p.done)
}

func (s *session) finished() {
	s.mu.Lock()
	s.tasks--
	s.mu.Unlock()
}

// subshell runs do as the whole life of sh: flow and panics end here. It reports
// the status and gives up what sh holds.
func (sh *shell) subshell(do func()) (status int) {
	defer sh.release()
	sh.life(do)
	return sh.status
}

// life runs do, then the EXIT trap; nothing gets out of it.
func (sh *shell) life(do func()) {
	sh.guard(do)
	sh.guard(sh.exitTrap)
	if n := sh.proc.killed.Load(); n > 0 {
		sh.status = 128 + int(n)
	}
	if sh.ses.Budget.Cause() != nil {
		sh.status = 126
	}
	sh.status &= 255
}

// guard runs do and takes the panics that end a shell.
func (sh *shell) guard(do func()) {
	defer func() {
		switch x := recover().(type) {
		case nil:
		case ended:
			sh.status, sh.flow = x.status, exits
		case discard:
			sh.status = x.status
		default:
			sh.errText(fmt.Sprintf("%sa bug ended this shell: %v\n", sh.prefix(), x))
			sh.status, sh.flow = 125, exits
		}
	}()
	do()
}

// pipeline runs the members of a | b | c at once.
func (sh *shell) pipeline(members []*syntax.Stmt, both []bool) {
	status := make([]int, len(members))
	subs := make([]*shell, 0, len(members))
	last := len(members) - 1
	var in *pipeEnd
	for i, m := range members[:last] {
		sub := sh.member()
		var next *pipeEnd
		if in != nil {
			sub.setFD(0, in.take())
		}
		next = newPipeEnd(sub, both[i])
		subs = append(subs, sub)
		i, m := i, m
		in = next
		sh.ses.start(sh, sub, func() { sub.memberStmt(m) }, func(st int) { status[i] = st })
	}
	if sh.shopts["lastpipe"] {
		sh.lastInShell(members[last], in)
		status[last] = sh.status
	} else {
		sub := sh.member()
		sub.setFD(0, in.take())
		subs = append(subs, sub)
		sh.ses.start(sh, sub, func() { sub.memberStmt(members[last]) }, func(st int) { status[last] = st })
	}
	for _, sub := range subs {
		<-sub.proc.done
	}
	if sh.ctx.Err() == nil {
		sh.checkLimit()
	}
	sh.check()
	sh.pipeStatus = status
	sh.status = status[last]
	if sh.on(optPipeFail) {
		for _, st := range status {
			if st != 0 {
				sh.status = st
			}
		}
	}
}

// member is the subshell of one command of a pipeline.
func (sh *shell) member() *shell {
	sub := sh.clone()
	sub.deeper()
	return sub
}

// memberStmt runs a member: a simple command's failure is the pipeline's to tell
// the ERR trap.
func (sh *shell) memberStmt(m *syntax.Stmt) {
	if _, ok := m.Cmd.(*syntax.CallExpr); ok {
		sh.noErrExit++
	}
	sh.stmt(m)
}

func (sh *shell) lastInShell(m *syntax.Stmt, in *pipeEnd) {
	old := sh.fds[0]
	delete(sh.fds, 0)
	sh.fds[0] = in.take()
	defer func() { sh.setFD(0, old) }()
	sh.stmt(m)
}

// job is a background command as its shell knows it.
type job struct {
	id      int
	pid     int
	proc    *proc
	text    string
	status  *atomic.Int32 // valid when the proc is done
	foreign bool          // the parent's: not to be waited for
	told    bool
}

func newJob(id int, p *proc, text string) *job {
	return &job{id: id, pid: p.pid, proc: p, text: text, status: &atomic.Int32{}}
}

func (j *job) running() bool {
	select {
	case <-j.proc.done:
		return false
	default:
		return true
	}
}

// background starts st as a job.
func (sh *shell) background(st *syntax.Stmt) {
	sub := sh.cloneJob()
	sub.deeper()
	sub.setFD(0, nullInput())
	sub.loops = 0
	sh.nextJob++
	if len(sh.liveJobs()) == 0 {
		sh.nextJob = 1
	}
	j := newJob(sh.nextJob, sub.proc, sh.jobText(st))
	st2 := *st
	st2.Background = false
	sh.ses.start(sh, sub, func() { sub.stmt(&st2) }, func(status int) { j.status.Store(int32(status)) })
	sh.jobs = append(sh.jobs, j)
	sh.lastJob = j.pid
	sh.status = 0
	sh.forgetJobs()
}

func (sh *shell) liveJobs() []*job {
	var live []*job
	for _, j := range sh.jobs {
		if !j.foreign && j.running() {
			live = append(live, j)
		}
	}
	return live
}

// maxKept bounds how many ended jobs wait knows.
const maxKept = 1000

func (sh *shell) forgetJobs() {
	if len(sh.jobs) > maxKept {
		sh.jobs = sh.jobs[len(sh.jobs)-maxKept:]
	}
}

// waitFor waits until a proc has ended; the signal of a trap ends the wait.
func (sh *shell) waitFor(j *job) (status int, interrupted bool) {
	select {
	case <-j.proc.done:
		return int(j.status.Load()), false
	default:
	}
	for {
		select {
		case <-j.proc.done:
			return int(j.status.Load()), false
		case sig := <-sh.proc.pending:
			sh.note(sig)
			n := signalNumber(sig)
			sh.runPending()
			return 128 + n, true
		case <-sh.ctx.Done():
			sh.check()
		}
	}
}

// signal sends a signal to a proc; the error is kill's.
func (s *session) signal(p *proc, sig int) error {
	if sig == 0 {
		return nil
	}
	name := signalName(sig)
	if t := p.trapped.Load(); t != nil && sig != int(syscall.SIGKILL) {
		if action, ok := (*t)[name]; ok {
			if action == "" {
				return nil
			}
			select {
			case p.pending <- name:
				p.signalled.Store(true)
			default:
			}
			return nil
		}
	}
	switch syscall.Signal(sig) {
	case syscall.SIGCHLD, syscall.SIGCONT, syscall.SIGURG, syscall.SIGWINCH:
		return nil
	case syscall.SIGSTOP, syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU:
		return errors.New("stopping is not supported here")
	}
	p.killed.CompareAndSwap(0, int32(sig))
	p.cancel(killedBy{sig})
	return nil
}

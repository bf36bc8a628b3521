// Package proc keeps the processes of a script, which are none: a process here
// is a number that kill and wait know, and a goroutine at most.
//
//	var t proc.Table
//	p := t.New(nil, cancel)
//	if !t.Go(p, limit, body) { ... } // too many run already
//	err := proc.Signal(p, 15)
//	t.Ended(p)
//	t.Wait()
//
// A Table belongs to all the shells of one Run. Jobs is the background jobs of
// one shell. What a trap does is written in package jobs.
package proc

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
)

// Proc stands for a process. Its methods and Signal are safe for concurrent
// use.
type Proc struct {
	PID    int
	Parent *Proc
	Cancel context.CancelCauseFunc // ends what runs under it
	Done   chan struct{}           // closed when it has ended

	Signalled atomic.Bool // a signal came that is trapped
	Pending   chan string // such signals, by name, for the shell to run its traps
	Trapped   atomic.Pointer[map[string]string]
	Killed    atomic.Int32 // the signal that ended it; 0: none
}

// killedBy is the cause of a context that a signal ended.
type killedBy struct{ sig int }

func (k killedBy) Error() string { return fmt.Sprintf("killed by signal %d", k.sig) }

// EndStatus is the exit status of a shell whose context has ended.
func (p *Proc) EndStatus() int {
	if n := p.Killed.Load(); n > 0 {
		return 128 + int(n)
	}
	return 143
}

// Table is the processes of one Run. The zero value is empty and usable. It is
// safe for concurrent use.
type Table struct {
	mu    sync.Mutex
	procs map[int]*Proc
	last  int // the process number that was given last; the first is 1, which is $$
	tasks int
	busy  sync.WaitGroup
}

// New makes a process. cancel ends what runs under it.
func (t *Table) New(parent *Proc, cancel context.CancelCauseFunc) *Proc {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last++
	if t.procs == nil {
		t.procs = map[int]*Proc{}
	}
	p := &Proc{PID: t.last, Parent: parent, Cancel: cancel, Done: make(chan struct{}), Pending: make(chan string, 64)}
	t.procs[p.PID] = p
	return p
}

// Ended removes a process: kill does not find it any more.
func (t *Table) Ended(p *Proc) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.procs, p.PID)
}

// Find is the process of a number; nil if there is none.
func (t *Table) Find(pid int) *Proc {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.procs[pid]
}

// Go runs do as p in a goroutine and closes p.Done after it. It reports false,
// and runs nothing, if most goroutines run already.
func (t *Table) Go(p *Proc, most int64, do func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if int64(t.tasks) >= most {
		return false
	}
	t.tasks++
	t.busy.Add(1)
	go t.run(p, do)
	return true
}

func (t *Table) run(p *Proc, do func()) {
	defer t.busy.Done()
	defer t.finished()
	do()
	close(p.Done)
}

func (t *Table) finished() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tasks--
}

// Notify sends j to done when it has ended, unless stop is closed before.
func (t *Table) Notify(j *Job, done chan<- *Job, stop <-chan struct{}) {
	t.busy.Add(1)
	go t.notify(j, done, stop)
}

func (t *Table) notify(j *Job, done chan<- *Job, stop <-chan struct{}) {
	defer t.busy.Done()
	select {
	case <-j.Proc.Done:
		done <- j
	case <-stop:
	}
}

// Wait returns after every goroutine of Go and Notify has returned.
func (t *Table) Wait() { t.busy.Wait() }

// Signal sends a signal to a process. The error is ready to be printed by kill.
func Signal(p *Proc, sig int) error {
	if sig == 0 {
		return nil
	}
	name := SignalName(sig)
	if t := p.Trapped.Load(); t != nil && sig != int(syscall.SIGKILL) {
		if action, ok := (*t)[name]; ok {
			if action == "" {
				return nil
			}
			select {
			case p.Pending <- name:
				p.Signalled.Store(true)
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
	p.Killed.CompareAndSwap(0, int32(sig))
	p.Cancel(killedBy{sig})
	return nil
}

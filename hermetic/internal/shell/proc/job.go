package proc

import (
	"strconv"
	"strings"
	"sync/atomic"
)

// Job is a background command as its shell knows it.
type Job struct {
	ID       int // as in %1
	PID      int
	Proc     *Proc
	Text     string
	Status   *atomic.Int32 // valid when Proc is done
	Foreign  bool          // it is a job of the parent shell, which wait does not wait for
	Reported bool          // jobs or wait has shown that it ended
}

// Running reports whether the job has not ended.
func (j *Job) Running() bool {
	select {
	case <-j.Proc.Done:
		return false
	default:
		return true
	}
}

// SetStatus keeps the exit status; call it before the process is done.
func (j *Job) SetStatus(status int) { j.Status.Store(int32(status)) }

// Jobs is the jobs of one shell, the oldest first. The goroutine of the shell
// owns it.
type Jobs struct {
	List []*Job
	Last int // $!: the process number of the last background command; 0: none
	next int // the number of the job that was started last

	substitution *Job // the last process substitution
}

// maxKept bounds how many jobs are remembered for wait.
const maxKept = 1000

// Add makes a job of p, which becomes $!.
func (l *Jobs) Add(p *Proc, text string) *Job {
	l.next++
	j := &Job{ID: l.next, PID: p.PID, Proc: p, Text: text, Status: &atomic.Int32{}}
	l.List = append(l.List, j)
	l.Last = j.PID
	return j
}

// AddSubstitution makes p, a process substitution, $!. It is not in the list: it
// has no number, and jobs does not show it.
func (l *Jobs) AddSubstitution(p *Proc) *Job {
	l.substitution = &Job{PID: p.PID, Proc: p, Status: &atomic.Int32{}}
	l.Last = p.PID
	return l.substitution
}

// Substitution is the last process substitution, if it is $!; nil if not.
func (l *Jobs) Substitution() *Job {
	if s := l.substitution; s != nil && s.PID == l.Last {
		return s
	}
	return nil
}

// Restart makes numbers begin with 1 again if no job runs.
func (l *Jobs) Restart() {
	if len(l.Live()) == 0 {
		l.next = 0
	}
}

// Forget drops the oldest jobs if there are too many.
func (l *Jobs) Forget() {
	if len(l.List) > maxKept {
		l.List = l.List[len(l.List)-maxKept:]
	}
}

// Clone copies the list for a subshell, for which the jobs are foreign.
func (l *Jobs) Clone() Jobs {
	c := Jobs{List: make([]*Job, len(l.List)), Last: l.Last, next: l.next}
	for i, j := range l.List {
		k := *j
		k.Foreign = true
		c.List[i] = &k
	}
	return c
}

// Live lists the shell's own jobs that run.
func (l *Jobs) Live() []*Job {
	var live []*Job
	for _, j := range l.List {
		if !j.Foreign && j.Running() {
			live = append(live, j)
		}
	}
	return live
}

// Find is the job that %1, %+, %text or a process number means; nil if there is
// none.
func (l *Jobs) Find(spec string) *Job {
	var own []*Job
	for _, j := range l.List {
		if !j.Foreign {
			own = append(own, j)
		}
	}
	if text, ok := strings.CutPrefix(spec, "%"); ok {
		return findSpec(own, text)
	}
	pid, err := strconv.Atoi(spec)
	if err != nil {
		return nil
	}
	for _, j := range own {
		if j.PID == pid {
			return j
		}
	}
	return nil
}

func findSpec(own []*Job, text string) *Job {
	nth := func(i int) *Job {
		if i < 0 {
			return nil
		}
		return own[i]
	}
	last := func(is func(*Job) bool) *Job {
		for i := len(own) - 1; i >= 0; i-- {
			if is(own[i]) {
				return own[i]
			}
		}
		return nil
	}
	id, err := strconv.Atoi(text)
	switch {
	case err == nil:
		return last(func(j *Job) bool { return j.ID == id })
	case text == "" || text == "+" || text == "%":
		return nth(len(own) - 1)
	case text == "-":
		return nth(len(own) - 2)
	}
	return last(func(j *Job) bool {
		part, ok := strings.CutPrefix(text, "?")
		return ok && strings.Contains(j.Text, part) || strings.HasPrefix(j.Text, text)
	})
}

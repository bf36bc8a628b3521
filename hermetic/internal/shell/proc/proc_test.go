package proc

import (
	"context"
	"testing"
)

func TestSignalNames(t *testing.T) {
	for name, want := range map[string]int{"TERM": 15, "SIGTERM": 15, "term": 15, "9": 9, "EXIT": 0, "RTMIN": 34, "RTMAX-1": 63, "64": 64, "33": -1, "65": -1, "WHAT": -1} {
		if got := SignalNumber(name); got != want {
			t.Errorf("SignalNumber(%q) = %d, want %d", name, got, want)
		}
	}
	for n := range MaxSignal + 1 {
		if name := SignalName(n); name != "" && SignalNumber(name) != n {
			t.Errorf("%d is %q, which is %d", n, name, SignalNumber(name))
		}
	}
	for name, want := range map[string]string{"err": "ERR", "0": "EXIT", "SIGINT": "INT", "WHAT": ""} {
		if got := TrapName(name); got != want {
			t.Errorf("TrapName(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestSignal(t *testing.T) {
	var table Table
	ctx, cancel := context.WithCancelCause(context.Background())
	p := table.New(nil, cancel)
	p.Trapped.Store(&map[string]string{"INT": "", "USR1": "echo"})
	for _, sig := range []int{0, 2, 17} { // none, ignored, and one that does nothing
		if err := Signal(p, sig); err != nil || p.Signalled.Load() || ctx.Err() != nil {
			t.Errorf("signal %d: %v, %v, %v", sig, err, p.Signalled.Load(), ctx.Err())
		}
	}
	if err := Signal(p, 10); err != nil || !p.Signalled.Load() || <-p.Pending != "USR1" || ctx.Err() != nil {
		t.Errorf("a signal with a trap: %v, %v", err, ctx.Err())
	}
	if err := Signal(p, 19); err == nil {
		t.Error("a process can be stopped")
	}
	if err := Signal(p, 15); err != nil || ctx.Err() == nil || p.EndStatus() != 143 {
		t.Errorf("TERM: %v, %v, %d", err, ctx.Err(), p.EndStatus())
	}
	if Signal(p, 9); p.EndStatus() != 143 {
		t.Errorf("the second signal decides: %d", p.EndStatus())
	}
}

func TestGoIsBounded(t *testing.T) {
	var table Table
	_, cancel := context.WithCancelCause(context.Background())
	a, b := table.New(nil, cancel), table.New(nil, cancel)
	wait := make(chan struct{})
	if !table.Go(a, 1, func() { <-wait }) {
		t.Fatal("the first does not run")
	}
	if table.Go(b, 1, func() { t.Error("the second runs") }) {
		t.Error("the second is started")
	}
	close(wait)
	<-a.Done
	table.Wait()
	if !table.Go(b, 1, func() {}) {
		t.Error("none runs, and one more is refused")
	}
	table.Wait()
}

func TestJobs(t *testing.T) {
	var table Table
	var jobs Jobs
	_, cancel := context.WithCancelCause(context.Background())
	first := jobs.Add(table.New(nil, cancel), "sleep 1")
	second := jobs.Add(table.New(nil, cancel), "make all")
	for spec, want := range map[string]*Job{
		"%1": first, "%2": second, "%3": nil, "%": second, "%+": second, "%%": second, "%-": first,
		"%sl": first, "%?all": second, "%nothing": nil, "1": first, "2": second, "3": nil, "sleep": nil,
	} {
		if got := jobs.Find(spec); got != want {
			t.Errorf("Find(%q) = %+v", spec, got)
		}
	}
	if jobs.Last != second.PID {
		t.Errorf("$! is %d", jobs.Last)
	}
	sub := jobs.Clone()
	if sub.Find("%1") != nil || len(sub.Live()) != 0 {
		t.Error("a subshell waits for jobs of its parent")
	}
	close(first.Proc.Done)
	if live := jobs.Live(); len(live) != 1 || live[0] != second {
		t.Errorf("%d jobs run", len(live))
	}
	close(second.Proc.Done)
	jobs.Restart()
	if j := jobs.Add(table.New(nil, cancel), "again"); j.ID != 1 {
		t.Errorf("the first job after all have ended is %%%d", j.ID)
	}
	p := jobs.AddSubstitution(table.New(nil, cancel))
	if jobs.Substitution() != p {
		t.Error("the last process substitution is not $!")
	}
	jobs.Add(table.New(nil, cancel), "after")
	if jobs.Substitution() != nil {
		t.Error("a process substitution is $! after another job")
	}
}

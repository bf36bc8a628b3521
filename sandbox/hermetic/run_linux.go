package hermetic

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"egressd/internal/linux/foreground"
	"egressd/internal/linux/stdfiles"
	"egressd/sandbox"
	"egressd/sandbox/hermetic/control"
)

// exitLimit is the exit code of a script that met a bound.
const exitLimit = 126

// Run runs the script that spec asks for and reports how it ended. The signals
// HUP, INT, QUIT and TERM that this process gets end the run; so do ctx and
// spec.Timeout. Then the script has spec.Grace (zero: 200 ms) to stop where it
// is, and is killed. Run returns when nothing of the run is left: no process, no
// goroutine, no descriptor. An error means that no script ran; a
// *sandbox.CapabilityError says what this tier or the machine can't do.
func (b *Backend) Run(ctx context.Context, spec sandbox.Spec) (sandbox.Result, error) {
	res := sandbox.Result{ExitCode: sandbox.ExitLauncher, Started: time.Now()}
	err := b.Supports(spec)
	if err == nil {
		err = b.run(ctx, spec, &res)
	}
	res.Ended = time.Now()
	return res, err
}

// run is Run without the clock.
func (b *Backend) run(ctx context.Context, spec sandbox.Spec, res *sandbox.Result) error {
	call, err := invoked(spec)
	if err != nil {
		return err
	}
	where, err := findWorkspace(spec.Dir)
	if err != nil {
		return err
	}
	if err := where.mounted(); err != nil {
		return err
	}
	bounds := b.Limits.WithDefaults()
	if call.stdin {
		if call.script, err = readScript(spec.Stdin, bounds.Source); err != nil {
			return err
		}
		spec.Stdin = nil
	}
	stdio, closeNull, err := spec.StandardFiles()
	if err != nil {
		return err
	}
	defer closeNull()
	if err := stdfiles.Check(stdio, spec.Protect); err != nil {
		return err
	}
	start := &control.Start{
		Script: call.script, Name: call.name, Args: call.args, Options: call.options,
		Dir: where.dir, Env: b.complete(spec.Env), Limits: bounds, Overlay: b.Overlay,
	}
	for _, path := range spec.Protect {
		if name := where.inside(path); name != "" {
			start.Protect = append(start.Protect, name)
		}
	}
	if name := where.repository(); name != "" {
		start.Protect = append(start.Protect, name)
	}
	r := &running{b: b, spec: spec, res: res, messages: make(chan control.Message), over: make(chan struct{}), out: make(chan outgoing, 128)}
	return r.in(ctx, spawn{
		stdio: stdio, root: where.root, write: !b.Overlay, runAs: spec.RunAs, exe: b.hooks.exe, walled: !b.skips("landlock") && !b.skips("landlock at start"),
	}, b.kernelLimits(spec), start)
}

// skips reports whether a layer is left out, which only tests do.
func (b *Backend) skips(layer string) bool { return slices.Contains(b.hooks.skip, layer) }

// kernelLimits are the worker's rlimits: above what the interpreter counts
// itself, so that they are met only by what it can't count.
func (b *Backend) kernelLimits(spec sandbox.Spec) *control.Bounds {
	l := b.Limits.WithDefaults()
	const arenas = 128 << 20 // the Go runtime maps memory 64 MiB at a time
	size, data := ownMemory()
	room := uint64(l.Memory) + uint64(l.Memory)/4 + arenas
	w := &control.Bounds{
		Data: room + data, Address: room + size,
		File: uint64(l.Written), Files: uint64(l.Files) + 56, CPU: 3600, Skip: b.hooks.skip,
	}
	if spec.Timeout > 0 {
		w.CPU = 2*uint64(spec.Timeout/time.Second) + 10
	}
	if b.hooks.cpu > 0 {
		w.CPU = b.hooks.cpu
	}
	return w
}

// ownMemory is what a process of this program maps before it does anything, by
// the example of this one: all of it, and what of it is data.
//
// Threat: one allocation that is larger than all the rest. The kernel does not
// count against RLIMIT_DATA what is mapped over a reservation, and the Go runtime
// maps memory that way -> RLIMIT_AS counts the reservation itself. Left over:
// programs with a C library get room for the stacks of their threads besides.
func ownMemory() (size, data uint64) {
	const runtimeSize, runtimeData, stacks = 2 << 30, 64 << 20, 2 << 30
	size, data = runtimeSize, runtimeData // where it can't be seen
	if text, err := os.ReadFile("/proc/self/statm"); err == nil {
		fields := strings.Fields(string(text)) // proc_pid_statm(5): the first is all, the sixth data and stack, in pages
		if len(fields) >= 6 {
			size, data = pages(fields[0], size), pages(fields[5], data)
		}
	}
	if len(libraries()) > 0 {
		size += stacks
	}
	return size, data
}

// pages is a number of pages in bytes.
func pages(text string, otherwise uint64) uint64 {
	n, err := strconv.ParseUint(text, 10, 40)
	if err != nil {
		return otherwise
	}
	return n * uint64(os.Getpagesize())
}

// readScript reads a script from f.
func readScript(f *os.File, limit int64) (string, error) {
	if f == nil {
		return "", nil
	}
	if foreground.IsTerminal(f) {
		return "", &sandbox.CapabilityError{
			Isolation: isolation, What: "the script would come from the terminal, and there is no interactive shell here",
			Fix: "write sh -c 'SCRIPT', --script FILE, or launch --tier hermetic <FILE",
		}
	}
	text, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return "", fmt.Errorf("script on the standard input: %w", err)
	}
	return string(text), nil
}

// running is one run.
type running struct {
	b    *Backend
	spec sandbox.Spec
	res  *sandbox.Result

	worker   *child
	door     *door // nil: no network
	messages chan control.Message
	over     chan struct{} // closed when nobody reads messages any more
	out      chan outgoing

	ended  *control.EndReport
	failed *control.FailReport
	signal syscall.Signal // what this process was told to end with; 0: nothing
	killed bool
}

// outgoing is something to tell the worker.
type outgoing struct {
	m  control.Message
	fd *os.File // goes along and is closed here; nil: none
}

// in starts the worker and sees to it until nothing is left of it.
func (r *running) in(ctx context.Context, s spawn, bounds *control.Bounds, start *control.Start) (err error) {
	serving, stopServing := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stopServing()
	if err := r.openDoor(serving, &wg, start); err != nil {
		return err
	}
	signals, stopSignals := catchSignals()
	defer stopSignals()
	if r.spec.Forwarding != nil {
		r.spec.Forwarding()
	}
	if r.worker, err = s.start(); err != nil {
		return fmt.Errorf("worker: %w", err)
	}
	r.res.Started = time.Now()
	wg.Go(r.read)
	wg.Go(r.write)
	r.tell(control.Message{Bounds: bounds}, nil)
	r.tell(control.Message{Start: start}, nil)
	r.loop(ctx, signals)
	close(r.over)
	close(r.out)
	r.worker.kill()
	<-r.worker.ended
	r.worker.ctl.Shutdown()
	stopServing()
	wg.Wait()
	defer r.worker.close()
	return r.conclude()
}

// loop is the launcher's life while the script runs: it returns when the worker
// has reported, or is gone.
func (r *running) loop(ctx context.Context, signals <-chan os.Signal) {
	var deadline, kill <-chan time.Time
	if r.spec.Timeout > 0 {
		t := time.NewTimer(r.spec.Timeout)
		defer t.Stop()
		deadline = t.C
	}
	done := ctx.Done()
	for {
		select {
		case m, ok := <-r.messages:
			if !ok {
				r.worker.wait(goneGrace)
				return
			}
			switch {
			case m.Ended != nil:
				r.ended = m.Ended
				return
			case m.Failed != nil:
				r.failed = m.Failed
				return
			case m.Dial != nil:
				r.dial(m.Dial.ID)
			}
		case sig := <-signals:
			if r.signal != 0 {
				return
			}
			r.signal = sig.(syscall.Signal)
			kill = r.stop()
		case <-deadline:
			r.res.TimedOut = true
			kill = r.stop()
		case <-done:
			done = nil
			r.killed = true
			return
		case <-kill:
			return
		}
	}
}

// stop asks the script to end, and reports when to insist.
func (r *running) stop() <-chan time.Time {
	r.tell(control.Message{Stop: &control.StopOrder{}}, nil)
	grace := r.spec.Grace
	if grace <= 0 {
		grace = defaultGrace
	}
	return time.After(grace)
}

// goneGrace is for a worker whose control socket is closed to be gone itself,
// and to leave its own exit status.
const goneGrace = time.Second

// defaultGrace is for a script that was ended to stop where it is: to write what
// its commands hold, and to say what an overlay holds.
const defaultGrace = 200 * time.Millisecond

// tell hands m to the worker, without waiting for it. A worker that does not
// read what it asked for is ended.
func (r *running) tell(m control.Message, fd *os.File) {
	select {
	case r.out <- outgoing{m, fd}:
	default:
		if fd != nil {
			fd.Close()
		}
		r.worker.kill()
	}
}

// write sends what there is to tell, until the run is over.
func (r *running) write() {
	for o := range r.out {
		var fds []int
		if o.fd != nil {
			fds = []int{int(o.fd.Fd())}
		}
		err := r.worker.ctl.Send(o.m, fds...)
		if o.fd != nil {
			o.fd.Close()
		}
		if err != nil {
			r.worker.ctl.Shutdown() // the worker is gone, or soon
		}
	}
}

// read turns the control socket into messages until it closes.
func (r *running) read() {
	defer close(r.messages)
	for {
		m, _, err := r.worker.ctl.Receive()
		if err != nil {
			return
		}
		select {
		case r.messages <- m:
		case <-r.over:
			return
		}
	}
}

// catchSignals catches what ends the run. What was ignored when the launcher
// started (nohup) stays ignored.
func catchSignals() (<-chan os.Signal, func()) {
	c := make(chan os.Signal, 4)
	for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM} {
		if !signal.Ignored(s) {
			signal.Notify(c, s)
		}
	}
	return c, func() { signal.Stop(c) }
}

package process

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"egressd/internal/linux/foreground"
	"egressd/internal/linux/kernelversion"
	"egressd/internal/linux/stdfiles"
	"egressd/sandbox"
	"egressd/sandbox/process/control"
)

const setUpLimit = 30 * time.Second // from fork to a running harness

// Supports reports nil when this tier can run spec, else a
// *sandbox.CapabilityError. It starts nothing; what only a start can show is
// reported by Run.
func (b *Backend) Supports(spec sandbox.Spec) error {
	if _, err := commandLine(spec); err != nil {
		return &sandbox.CapabilityError{Isolation: isolationNetns, What: err.Error()}
	}
	if !kernelversion.AtLeast(5, 12) {
		return &sandbox.CapabilityError{Isolation: isolationNetns, What: "this kernel is older than Linux 5.12", Fix: "use a newer kernel, or --isolation=env (advisory)"}
	}
	return nil
}

// Run runs spec and reports how it ended. It forwards the signals HUP, INT,
// QUIT, TERM, USR1 and USR2 that this process gets to the harness, gives it
// the terminal when the launcher holds it, and returns when nothing of the run
// is left: no process, no mount, no goroutine, no descriptor. When ctx ends,
// the harness is ended as after a timeout. An error means that no harness ran;
// a *sandbox.CapabilityError says what the machine can't do.
func (b *Backend) Run(ctx context.Context, spec sandbox.Spec) (sandbox.Result, error) {
	res := sandbox.Result{ExitCode: exitLauncher, Started: time.Now()}
	defer b.Early.Discard() // unless it was taken
	err := b.Supports(spec)
	if err == nil {
		err = b.run(ctx, spec, &res)
	}
	res.Ended = time.Now()
	return res, err
}

// session is one run.
type session struct {
	b     *Backend
	spec  sandbox.Spec
	child *child
	doors DoorServer
	tty   *terminal
	dials dialTable

	messages chan initMessage
	running  bool // the harness was told to start
}

// initMessage is what arrives from the init.
type initMessage struct {
	m   control.Message
	fds []*os.File
}

func (b *Backend) run(ctx context.Context, spec sandbox.Spec, res *sandbox.Result) error {
	stdio, closeStdio, err := standardFiles(spec)
	if err != nil {
		return err
	}
	defer closeStdio()
	if err := stdfiles.Check(stdio, spec.Protect); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ln, err := b.listenPublished(ctx)
	if err != nil {
		return err
	}
	defer closeListeners(ln)
	c, err := b.start(stdio, spec.RunAs)
	if err != nil {
		return err
	}
	s := &session{b: b, spec: spec, child: c, tty: openTerminal(), messages: make(chan initMessage)}
	defer func() { s.tty.takeBack(res.ExitCode > exitSignal || res.TimedOut || !s.running) }()
	return s.supervise(ctx, stdio, ln, res)
}

// supervise talks to the init from its configuration to its end.
func (s *session) supervise(ctx context.Context, stdio [3]*os.File, ln []published, res *sandbox.Result) error {
	cfg, err := s.prepare(ctx, stdio, ln)
	if err != nil {
		return err
	}
	// The gate outlives ctx: what the harness still says while it is asked to
	// end passes through it.
	doors, closeDoors := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	stopSignals := func() {}
	defer func() {
		s.child.Kill() // it has ended by itself, mostly
		closeDoors()
		s.child.ctl.Shutdown()
		for im := range s.messages {
			control.CloseAll(im.fds) // drained, so that the reader can end
		}
		stopSignals() // takes a while, as does the end of the namespaces
		s.child.Wait()
		wg.Wait()
		s.child.ctl.Close()
		s.dials.fail(errors.New("the run has ended"))
	}()
	go s.read()
	if err := s.child.ctl.Send(control.Message{Config: &cfg.Config}); err != nil {
		return s.diedEarly(err)
	}
	// The init is busy now, and would have been held up before. A signal that
	// ended the launcher until here ended the init as well.
	var signals <-chan os.Signal
	signals, stopSignals = catchSignals()
	if s.spec.Forwarding != nil {
		s.spec.Forwarding()
	}
	return s.loop(doors, ctx, &wg, ln, signals, res)
}

// prepare finds out what the init is to do. After an error there is no init.
func (s *session) prepare(ctx context.Context, stdio [3]*os.File, ln []published) (cfg *config, err error) {
	if s.doors, err = s.b.newDoorServer(ctx, ln); err == nil {
		cfg, err = s.config(stdio)
	}
	if err != nil {
		s.child.Discard()
		return nil, err
	}
	if s.child.Begun && cfg.needsHidden() {
		s.child.Discard()
		s.child, err = s.b.startAnew(stdio, s.spec.RunAs)
	}
	return cfg, err
}

// errTooEarly is a signal that came while the walls were being built: there was
// no harness yet to pass it to, so there is none.
var errTooEarly = errors.New("ended by a signal before the program started")

// loop is the supervisor's life: it returns when the init has reported the
// harness's end, or is gone.
func (s *session) loop(doors, ctx context.Context, wg *sync.WaitGroup, ln []published, signals <-chan os.Signal, res *sandbox.Result) error {
	setUp := time.NewTimer(setUpLimit)
	defer setUp.Stop()
	var deadline, kill <-chan time.Time
	done := ctx.Done()
	for {
		select {
		case im, ok := <-s.messages:
			if !ok {
				return s.gone(res)
			}
			switch m := im.m; {
			case m.Doors != nil && !s.running:
				if err := s.open(doors, wg, m.Doors, im.fds, ln); err != nil {
					return err
				}
				s.running = true
				setUp.Stop()
				res.Started = time.Now()
				if s.spec.Timeout > 0 {
					deadline = time.After(s.spec.Timeout)
				}
			case m.Exited != nil:
				if !res.TimedOut {
					res.ExitCode = m.Exited.Code
				}
				return nil
			case m.Failed != nil:
				return setUpError(m.Failed)
			case m.Stopped != nil:
				s.stopped(m.Stopped.Sig)
			case m.Dialled != nil:
				s.dials.deliver(m.Dialled, im.fds)
			default:
				control.CloseAll(im.fds)
			}
		case sig := <-signals:
			if !s.running {
				res.ExitCode = exitSignal + int(sig.(syscall.Signal))
				return fmt.Errorf("%w (%v)", errTooEarly, sig)
			}
			s.order(sig.(syscall.Signal), false)
		case <-deadline:
			res.TimedOut, res.ExitCode = true, exitTimeout
			deadline, kill = nil, s.terminate()
		case <-done:
			done = nil
			if !s.running {
				return ctx.Err()
			}
			if kill == nil {
				kill = s.terminate()
			}
		case <-kill:
			if !res.TimedOut {
				res.ExitCode = exitSignal + int(syscall.SIGKILL)
			}
			return nil
		case <-setUp.C:
			return fmt.Errorf("the sandbox was not ready within %v", setUpLimit)
		}
	}
}

// gone is the end of an init that did not say how the harness ended.
func (s *session) gone(res *sandbox.Result) error {
	if res.TimedOut {
		return nil
	}
	if s.running {
		res.ExitCode = exitSignal + int(syscall.SIGKILL)
		return nil
	}
	return s.diedEarly(errors.New("the init ended without a word"))
}

// diedEarly prefers the init's own words to the broken pipe that its end left.
func (s *session) diedEarly(err error) error {
	for im := range s.messages {
		control.CloseAll(im.fds)
		if im.m.Failed != nil {
			return setUpError(im.m.Failed)
		}
	}
	return fmt.Errorf("sandbox set-up: %w", err)
}

// terminate asks every process inside to end, and reports when to insist.
func (s *session) terminate() <-chan time.Time {
	s.order(syscall.SIGTERM, true)
	return time.After(grace(s.spec))
}

func (s *session) order(sig syscall.Signal, all bool) {
	if !s.running {
		return
	}
	s.child.ctl.Send(control.Message{Signal: &control.SignalOrder{Sig: sig, All: all}}) //nolint:errcheck // the init's end is seen elsewhere
}

// stopped handles a stopped harness: it is given the terminal when it stopped
// for want of it, else the launcher's whole job stops, until somebody resumes
// it. Without a terminal nobody could, so the harness just stays stopped; as it
// does while a question to the person stands (see Backend.Asking).
func (s *session) stopped(sig syscall.Signal) {
	if s.tty == nil || s.b.Asking != nil && s.b.Asking() {
		return
	}
	wants := sig == syscall.SIGTTIN || sig == syscall.SIGTTOU
	if !wants || !s.tty.owned() {
		if !s.tty.granted && !wants {
			return
		}
		if !wants {
			sig = syscall.SIGTSTP // SIGSTOP would stop a group that nobody can wake
		}
		stopSelf(sig)
	}
	fg := s.tty.owned() || s.tty.granted && !s.someoneElseHolds()
	s.tty.granted = s.tty.granted || fg
	s.child.ctl.Send(control.Message{Resume: &control.ResumeOrder{Foreground: fg}}) //nolint:errcheck // the init's end is seen elsewhere
}

// someoneElseHolds reports whether the terminal belongs to neither the
// launcher nor the harness: to the shell that put this job into the
// background.
func (s *session) someoneElseHolds() bool {
	return foreground.Of(s.tty.f) != unix.Getpgrp()
}

// read turns the control socket into messages until it closes.
func (s *session) read() {
	defer close(s.messages)
	for {
		m, fds, err := s.child.ctl.Receive()
		if err != nil {
			return
		}
		s.messages <- initMessage{m, fds}
	}
}

// open serves the doors and lets the harness start.
func (s *session) open(ctx context.Context, wg *sync.WaitGroup, d *control.DoorsReady, fds []*os.File, ln []published) error {
	defer control.CloseAll(fds)
	log := s.b.log()
	for _, n := range d.Notes {
		log.Warn("capture", slog.String("note", n))
	}
	if err := s.doors.Open(ctx, wg, passedSockets(d, fds)); err != nil {
		return err
	}
	for _, p := range ln {
		wg.Go(func() { s.servePublished(ctx, p) })
	}
	if err := s.child.ctl.Send(control.Message{Go: &control.GoAhead{Env: s.environment(d.ProxyPort)}}); err != nil {
		return s.diedEarly(err)
	}
	return nil
}

// setUpError turns the init's report into what to tell the person.
func setUpError(f *control.FailReport) error {
	what := fmt.Sprintf("sandbox set-up failed at %s: %s", f.Step, f.Err)
	switch f.Errno {
	case 0:
		return errors.New(what)
	case unix.EPERM, unix.EACCES, unix.ENOSYS, unix.EOPNOTSUPP, unix.ENODEV, unix.EINVAL, unix.EAFNOSUPPORT, unix.EPROTONOSUPPORT:
		return &sandbox.CapabilityError{Isolation: isolationNetns, What: what, Fix: doctorFix}
	}
	return fmt.Errorf("%s: %w", what, f.Errno)
}

func (b *Backend) log() *slog.Logger {
	if b.Gate.Log != nil {
		return b.Gate.Log
	}
	return slog.New(slog.DiscardHandler)
}

// catchSignals catches what is forwarded to the harness. What was ignored when
// the launcher started (nohup) stays ignored.
func catchSignals() (<-chan os.Signal, func()) {
	c := make(chan os.Signal, 16)
	for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2} {
		if !signal.Ignored(s) {
			signal.Notify(c, s)
		}
	}
	return c, func() { signal.Stop(c) }
}

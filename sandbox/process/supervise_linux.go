package process

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"egressd/internal/linux/bounds"
	"egressd/internal/linux/ipc"
	"egressd/internal/linux/kernelversion"
	"egressd/internal/linux/relay"
	"egressd/internal/linux/stdfiles"
	"egressd/sandbox"
	"egressd/sandbox/process/control"
)

const setUpLimit = 30 * time.Second // from fork to a running program

// Supports reports a *sandbox.CapabilityError if this tier can't run spec. It
// starts nothing; what only a start can show is reported by Run.
func (b *Backend) Supports(spec sandbox.Spec) error {
	if _, err := spec.CommandLine(); err != nil {
		return &sandbox.CapabilityError{Isolation: isolationNetns, What: err.Error()}
	}
	if !kernelversion.AtLeast(5, 12) {
		return &sandbox.CapabilityError{Isolation: isolationNetns, What: "this kernel is older than Linux 5.12", Fix: "use a newer kernel, or --isolation=env (advisory)"}
	}
	return nil
}

// Run runs spec and reports how it ended. The signals HUP, INT, QUIT, TERM, USR1
// and USR2 that this process gets are forwarded to the program, unless they were
// ignored when this process started. Where spec's standard files are a terminal the
// program has one of its own, which is relayed. When ctx ends, the program is ended
// as after a timeout. Run returns when nothing of the run is left: no process, no
// mount, no goroutine, no descriptor. An error means that no program ran, or is
// ErrReplaced; a *sandbox.CapabilityError says what the machine can't do.
func (b *Backend) Run(ctx context.Context, spec sandbox.Spec) (sandbox.Result, error) {
	res := sandbox.Result{ExitCode: sandbox.ExitLauncher, Started: time.Now()}
	defer b.Early.Discard() // unless it was taken
	err := b.Supports(spec)
	if err == nil {
		err = b.run(ctx, spec, &res)
	}
	res.Ended = time.Now()
	return res, err
}

// supervisor is this process's part of one run.
type supervisor struct {
	b     *Backend
	spec  sandbox.Spec
	res   *sandbox.Result
	child *child
	doors DoorServer
	tty   *terminal

	published []published
	dials     dialTable

	names nameWatch     // what must not be replaced
	group *bounds.Group // nil: the limits need none

	messages chan initMessage
	running  bool // the program was started

	files keptFiles // what the rules about files need beside mounts
}

// initMessage is what arrives from the init.
type initMessage struct {
	m   control.Message
	fds []*os.File
}

func (b *Backend) run(ctx context.Context, spec sandbox.Spec, res *sandbox.Result) error {
	stdio, closeStdio, err := spec.StandardFiles()
	if err != nil {
		return err
	}
	defer closeStdio()
	if err := stdfiles.Check(stdio, spec.Protect); err != nil {
		return err
	}
	person, err := relay.Find(stdio)
	if err != nil {
		return err
	}
	defer person.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ln, err := b.listenPublished(ctx)
	if err != nil {
		return err
	}
	defer closeListeners(ln)
	group, err := b.newGroup(spec.RunAs)
	if err != nil {
		return err
	}
	c, err := b.start(stdio, spec.RunAs)
	if err != nil {
		return errors.Join(err, group.Discard())
	}
	s := &supervisor{
		b: b, spec: spec, res: res, child: c, group: group, published: ln, messages: make(chan initMessage),
		tty: newTerminal(person, stdio),
	}
	defer s.closeNames()
	defer s.files.close()
	defer s.closeGroup()
	return s.supervise(ctx, stdio)
}

// supervise sees the init from its configuration to its end.
func (s *supervisor) supervise(ctx context.Context, stdio [3]*os.File) error {
	cfg, err := s.prepare(ctx, stdio)
	if err != nil {
		return err
	}
	// The doors outlive ctx: the program may still use them while it is asked to
	// end.
	serving, closeDoors := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	stopSignals := func() {}
	defer func() {
		s.child.Kill() // it has ended by itself, mostly
		closeDoors()
		s.child.ctl.Shutdown()
		s.b.current.Store(nil)
		for im := range s.messages {
			ipc.CloseAll(im.fds) // drained, so that the reader can end
		}
		stopSignals() // takes a while, as does the end of the namespaces
		s.child.Wait()
		s.tty.end() // nobody inside is left to write
		wg.Wait()
		s.child.ctl.Close()
		s.dials.fail(errors.New("the run has ended"))
	}()
	go s.read()
	if s.group != nil { // before the init starts anything
		if err := s.child.With(s.group.Add); err != nil {
			return fmt.Errorf("the control group of the run: %w", err)
		}
	}
	if err := s.child.ctl.Send(control.Message{Config: &cfg.Config}); err != nil {
		return s.diedEarly(err)
	}
	// The init is busy now, and would have been held up before. A signal that
	// ended the launcher until here ended the init as well.
	s.guardFiles(cfg)
	stopSignals = s.tty.catchSignals()
	if s.spec.Forwarding != nil {
		s.spec.Forwarding()
	}
	return s.lastLook(s.loop(ctx, s.tty.signals, func(d *control.DoorsReady, fds []*os.File) error {
		return s.open(serving, &wg, d, fds)
	}))
}

// prepare finds out what the init is to do. After an error there is no init.
func (s *supervisor) prepare(ctx context.Context, stdio [3]*os.File) (cfg *config, err error) {
	if s.doors, err = s.b.newDoorServer(ctx, s.published); err == nil {
		cfg, err = s.config(stdio)
	}
	if err == nil {
		s.files.gate = cfg.gate
		err = s.openNames(cfg)
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

// errTooEarly is a signal that came during the set-up. There was no program yet to
// pass it on to, so none is started.
var errTooEarly = errors.New("ended by a signal before the program started")

// loop handles messages, signals and limits until the init has reported the end
// of the program, or is gone. open serves the doors and lets the program start.
func (s *supervisor) loop(ctx context.Context, signals <-chan os.Signal, open func(*control.DoorsReady, []*os.File) error) error {
	res := s.res
	setUp := time.NewTimer(setUpLimit)
	defer setUp.Stop()
	var deadline, kill <-chan time.Time
	done := ctx.Done()
	for {
		select {
		case im, ok := <-s.messages:
			if !ok {
				return s.gone()
			}
			switch m := im.m; {
			case m.Doors != nil && !s.running:
				if err := open(m.Doors, im.fds); err != nil {
					return err
				}
				s.running = true
				s.b.current.Store(&running{s.hold})
				setUp.Stop()
				res.Started = time.Now()
				if s.spec.Timeout > 0 {
					deadline = time.After(s.spec.Timeout)
				}
			case m.Exited != nil:
				if !res.TimedOut {
					res.ExitCode = m.Exited.Code
				}
				s.tty.release()
				return nil
			case m.Failed != nil:
				return setUpError(m.Failed)
			case m.Terminal != nil:
				err := s.tty.relayTo(im.fds)
				ipc.CloseAll(im.fds)
				if err != nil {
					return err
				}
			case m.Stopped != nil:
				s.stopped(m.Stopped.Sig)
			case m.Held != nil:
				select {
				case s.tty.held <- struct{}{}:
				default: // whoever asked has given up
				}
			case m.Dialled != nil:
				s.dials.deliver(m.Dialled, im.fds)
			case m.Refused != nil:
				s.refused(m.Refused)
			default:
				ipc.CloseAll(im.fds)
			}
		case c := <-s.names.changed:
			if err := s.replaced(c); err != nil {
				return err
			}
		case sig := <-signals:
			if s.terminalSignal(sig) {
				break
			}
			if !s.running && sig == syscall.SIGTSTP {
				stopSelf(syscall.SIGTSTP)
				break
			}
			if !s.running {
				res.ExitCode = sandbox.ExitSignal + int(sig.(syscall.Signal))
				return fmt.Errorf("%w (%v)", errTooEarly, sig)
			}
			s.order(sig.(syscall.Signal), false)
		case <-deadline:
			res.TimedOut, res.ExitCode = true, sandbox.ExitTimeout
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
				res.ExitCode = sandbox.ExitSignal + int(syscall.SIGKILL)
			}
			return nil
		case <-setUp.C:
			return fmt.Errorf("the sandbox was not ready within %v", setUpLimit)
		}
	}
}

// gone handles the end of an init that did not report how the program ended.
func (s *supervisor) gone() error {
	if s.res.TimedOut {
		return nil
	}
	if s.running {
		s.res.ExitCode = sandbox.ExitSignal + int(syscall.SIGKILL)
		return nil
	}
	return s.diedEarly(errors.New("the init ended without a report"))
}

// diedEarly reports what the init gave as its reason, or else err, mostly the
// broken pipe that it left.
func (s *supervisor) diedEarly(err error) error {
	for im := range s.messages {
		ipc.CloseAll(im.fds)
		if im.m.Failed != nil {
			return setUpError(im.m.Failed)
		}
	}
	return fmt.Errorf("sandbox set-up: %w", err)
}

// terminate asks every process inside to end, and reports when to insist.
func (s *supervisor) terminate() <-chan time.Time {
	s.order(syscall.SIGTERM, true)
	return time.After(s.spec.GracePeriod())
}

func (s *supervisor) order(sig syscall.Signal, all bool) {
	if !s.running {
		return
	}
	s.child.ctl.Send(control.Message{Signal: &control.SignalOrder{Sig: sig, All: all}}) //nolint:errcheck // the init's end is seen elsewhere
}

// read turns the control socket into messages until it closes.
func (s *supervisor) read() {
	defer close(s.messages)
	for {
		m, fds, err := s.child.ctl.Receive()
		if err != nil {
			return
		}
		s.messages <- initMessage{m, fds}
	}
}

// open serves the doors until ctx ends, and lets the program start.
func (s *supervisor) open(ctx context.Context, wg *sync.WaitGroup, d *control.DoorsReady, fds []*os.File) error {
	defer ipc.CloseAll(fds)
	log := s.b.log()
	for _, n := range d.Notes {
		log.Warn("capture", slog.String("note", n))
	}
	if err := s.doors.Open(ctx, wg, passedSockets(d, fds)); err != nil {
		return err
	}
	if err := s.child.ctl.Send(control.Message{Go: &control.GoAhead{Env: s.environment(d.ProxyPort)}}); err != nil {
		return s.diedEarly(err)
	}
	s.watchNames()
	// Not before: an order to dial that came in front of the go-ahead would end
	// the init. Who connects earlier waits in the listener's queue.
	for _, p := range s.published {
		wg.Go(func() { s.servePublished(ctx, p) })
	}
	return nil
}

// setUpError makes the error for the person of the init's report.
func setUpError(f *control.FailReport) error {
	what := fmt.Sprintf("sandbox set-up failed at %s: %s", f.Step, f.Err)
	switch f.Errno {
	case 0:
		return errors.New(what)
	case unix.EPERM, unix.EACCES, unix.ENOSYS, unix.EOPNOTSUPP, unix.ENODEV, unix.EINVAL, unix.EAFNOSUPPORT, unix.EPROTONOSUPPORT:
		return &sandbox.CapabilityError{Isolation: isolationNetns, What: what, Fix: doctorFix}
	}
	what = strings.TrimSuffix(what, ": "+f.Errno.Error())
	if f.Errno == unix.ENOENT && f.Step == "mounts" {
		return fmt.Errorf("%s: %w: it was there when the run began to start, and was removed on this machine since: start it again", what, f.Errno)
	}
	return fmt.Errorf("%s: %w", what, f.Errno)
}

func (b *Backend) log() *slog.Logger {
	if b.Gate.Log != nil {
		return b.Gate.Log
	}
	return slog.New(slog.DiscardHandler)
}

package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"egressd/internal/linux/relay"
	"egressd/sandbox/process/control"
)

// The program has a terminal of its own wherever the launcher's standard files are
// terminals, made inside (see inside.ownTerminal) and relayed by package relay. To
// the person it is a job of the shell all the same:
//
//   - Keys are the program's while it is in the foreground: the launcher's terminal
//     is raw then, and the program's own does what a terminal does.
//   - In the background, and in a pipeline, whose other members may read the terminal
//     as well, the program starts in the background of its own terminal. It writes,
//     and is stopped when it reads keys or sets modes. Then it gets the foreground,
//     if the launcher has it; else the launcher stops, as the program would have.
//   - When the program stops, so does the launcher's job; when that goes on, so does
//     the program.
//
// Threat: the program could signal the launcher and whatever shares a pipeline with
// it ("kill 0") -> it is in no group, session or namespace of theirs. Left over:
// nothing.

// holdLimit is how long everything inside may take to stop for a question.
const holdLimit = 2 * time.Second

// terminal is the terminal of one run.
type terminal struct {
	person     *relay.Terminal // nil: none of the standard files is one
	shared     bool            // others in a pipeline may use it, too
	foreground bool            // the program holds its terminal from the start
	jobs       bool            // a shell may stop and resume this process
	signals    chan os.Signal  // for the program, and about the terminal
	held       chan struct{}   // gets one when everything inside has stopped for hold

	mu    sync.Mutex
	relay *relay.Relay // nil: not yet, or none
}

func newTerminal(person *relay.Terminal, stdio [3]*os.File) *terminal {
	t := &terminal{
		person: person, shared: pipeline(stdio), jobs: jobs(),
		signals: make(chan os.Signal, 16), held: make(chan struct{}, 1),
	}
	t.foreground = person.Foreground() && !t.shared
	return t
}

// jobs reports whether a shell may stop and resume this process: it has a
// controlling terminal.
func jobs() bool {
	fd, err := unix.Open("/dev/tty", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	unix.Close(fd)
	return true
}

// pipeline reports whether one of the standard files is a pipe or a socket, whose
// other end may use the terminal, too.
func pipeline(stdio [3]*os.File) bool {
	for _, f := range stdio {
		if fi, err := f.Stat(); err == nil && fi.Mode()&(os.ModeNamedPipe|os.ModeSocket) != 0 {
			return true
		}
	}
	return false
}

// relayTo relays between the person's terminal and the program's, whose master is
// the only one of fds.
func (t *terminal) relayTo(fds []*os.File) error {
	if t.person == nil || t.relayed() != nil || len(fds) != 1 {
		return errors.New("the init made a terminal that nobody asked for")
	}
	r, err := relay.Start(t.person, fds[0], t.shared)
	if err != nil {
		return err
	}
	t.mu.Lock()
	t.relay = r
	t.mu.Unlock()
	if t.foreground {
		r.Grant()
	}
	return nil
}

// relayed is the relay, nil if there is none.
func (t *terminal) relayed() *relay.Relay {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.relay
}

// release leaves the keys to others, now that there is no program to read them.
func (t *terminal) release() {
	if r := t.relayed(); r != nil {
		r.Flush()
		r.Revoke()
	}
}

// end shows the rest of the program's output and gives the terminal back.
func (t *terminal) end() {
	t.mu.Lock()
	r := t.relay
	t.relay = nil
	t.mu.Unlock()
	if r != nil {
		r.End()
	}
}

// catchSignals catches what is forwarded to the program, and what concerns the
// terminal, until stop is called. What was ignored when this process started
// (nohup) stays ignored.
func (t *terminal) catchSignals() (stop func()) {
	all := []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2}
	if t.jobs {
		all = append(all, syscall.SIGTSTP)
	}
	if t.person != nil {
		all = append(all, syscall.SIGWINCH, syscall.SIGCONT)
	}
	for _, s := range all {
		if !signal.Ignored(s) {
			signal.Notify(t.signals, s)
		}
	}
	return func() { signal.Stop(t.signals) }
}

// stopped handles a stopped program. If it stopped because it needs the terminal and
// the launcher has it, it gets it; else the launcher's whole job stops until it is
// resumed. Where no shell could resume it, only the program stays stopped.
func (s *supervisor) stopped(sig syscall.Signal) {
	r := s.tty.relayed()
	wants := sig == syscall.SIGTTIN || sig == syscall.SIGTTOU
	switch {
	case wants && r != nil && s.tty.person.Foreground():
		s.resume(r, true)
		return
	case !s.tty.jobs:
		return
	case !wants:
		sig = syscall.SIGTSTP // SIGSTOP would stop a group that nobody can wake
	}
	granted := wants
	if r != nil {
		granted = granted || r.Granted()
		r.Flush()
		r.Revoke()
	}
	stopSelf(sig)
	s.resume(r, granted && s.tty.person.Foreground())
}

// resume lets the program go on.
func (s *supervisor) resume(r *relay.Relay, foreground bool) {
	foreground = foreground && r != nil
	if foreground {
		r.Resize()
		r.Grant()
	}
	s.child.ctl.Send(control.Message{Resume: &control.ResumeOrder{Foreground: foreground}}) //nolint:errcheck // the init's end is seen elsewhere
}

// terminalSignal handles a signal that concerns the terminal, and reports whether it
// was one.
func (s *supervisor) terminalSignal(sig os.Signal) bool {
	if sig != syscall.SIGWINCH && sig != syscall.SIGCONT {
		return false
	}
	switch r := s.tty.relayed(); {
	case r == nil:
	case sig == syscall.SIGWINCH:
		r.Resize()
	case !r.Granted():
	case s.tty.person.Foreground():
		// Stopped and resumed without notice (SIGSTOP): others had the terminal.
		r.Resize()
		r.Regain()
	default:
		r.Revoke()
		s.resume(r, false)
	}
	return true
}

// stopSelf stops the launcher's process group with sig, as the terminal would
// have, and returns when it goes on. The kernel does not stop a group that
// nobody could wake up; then it returns at once.
func stopSelf(sig syscall.Signal) {
	resumed := make(chan os.Signal, 1)
	signal.Notify(resumed, syscall.SIGCONT)
	defer signal.Stop(resumed)
	defer byDefault(sig)()
	if unix.Kill(0, sig) != nil {
		return
	}
	select {
	case <-resumed:
	case <-time.After(100 * time.Millisecond): // the group did not stop
	}
}

// byDefault gives sig its default action until undo is called. Package os/signal
// keeps the handler of one that it has caught once.
func byDefault(sig syscall.Signal) (undo func()) {
	if signal.Ignored(sig) {
		return func() {} // by who started this process
	}
	var old, none [4]uintptr // the kernel's struct sigaction: handler, flags, restorer, 64 signals
	if _, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(&none)), uintptr(unsafe.Pointer(&old)), unsafe.Sizeof(old[3]), 0, 0); errno != 0 {
		return func() {}
	}
	return func() {
		unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(&old)), 0, unsafe.Sizeof(old[3]), 0, 0)
	}
}

// hold is Backend.Hold for this run.
func (s *supervisor) hold(ctx context.Context) (release func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, holdLimit)
	defer cancel()
	goOn := func() {
		s.child.ctl.Send(control.Message{Hold: &control.HoldOrder{}}) //nolint:errcheck // the init's end is seen elsewhere
	}
	select {
	case <-s.tty.held: // of a hold that was given up
	default:
	}
	if err := s.child.ctl.Send(control.Message{Hold: &control.HoldOrder{On: true}}); err != nil {
		return nil, err
	}
	select {
	case <-s.tty.held:
	case <-ctx.Done():
		goOn()
		return nil, fmt.Errorf("the program did not stop: %w", ctx.Err())
	}
	r := s.tty.relayed()
	if r == nil {
		return goOn, nil
	}
	if err := r.Hold(ctx); err != nil {
		goOn()
		return nil, err
	}
	return func() { goOn(); r.Release() }, nil
}

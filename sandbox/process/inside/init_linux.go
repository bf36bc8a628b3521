package inside

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"egressd/internal/linux/ipc"
	"egressd/internal/linux/unixdiag"
	"egressd/sandbox/process/control"
	"egressd/sandbox/process/spawn"
)

// controlFD is the control socket's descriptor in the init; handOverFD that of
// the file which carries the init's state over its second execve.
const (
	controlFD  = 3
	handOverFD = 4
)

// initCrashed is the init's exit code if it could not report why.
const initCrashed = 125

// initProcess is pid 1 inside.
type initProcess struct {
	cfg control.Config
	env []string // the program's
	ctl *control.Conn
	tty *os.File // the program's terminal; nil: none

	diag *unixdiag.Conn // tells sockets apart; nil: nothing asks
	told notices

	holding   holding
	unwatched bool // covers are to be watched; the goroutine that listens sees to it
}

// run is the init's main function. It returns when the program has ended
// or the supervisor is gone; the kernel then kills whatever is left inside.
//
// Credentials belong to threads, and this one forks the program: it is called
// by func init, which Go runs on the startup thread from beginning to end (see
// runtime.LockOSThread, which would start another thread to make more from).
func run(args []string) int {
	if len(args) == 1 && args[0] == probeArg {
		return beProbed()
	}
	again := len(args) == 1 && args[0] == "again"
	// Threat: a descriptor that the launcher inherited (a socket, a directory
	// outside) reaches the program -> everything but stdio and the control
	// socket closes when the program is executed (not at once: some are the Go
	// runtime's own). Left over: what the person connects to stdin, stdout and
	// stderr.
	if err := unix.CloseRange(controlFD, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return initCrashed
	}
	in := &initProcess{ctl: control.NewConn(controlFD)}
	in.told.ctl = in.ctl
	err := mayPassModes(false)
	if err != nil {
		in.fail(&stepError{"start", err})
		return initCrashed
	}
	if again {
		err = in.takeOver()
	} else {
		err = in.setUp()
	}
	var se *stepError
	switch {
	case err == nil:
		outliveSignals()
		makeThreads()
		if err := in.listenCalls(); err != nil {
			in.fail(&stepError{"system calls", err})
			return initCrashed
		}
		return in.run()
	case errors.As(err, &se):
		in.fail(se)
	default:
		in.fail(&stepError{"start", err})
	}
	return initCrashed
}

// stepError says which step of the set-up failed.
type stepError struct {
	step string
	err  error
}

func (e *stepError) Error() string { return e.step + ": " + e.err.Error() }
func (e *stepError) Unwrap() error { return e.err }

// skips reports whether a layer is left out, which only tests do.
func (in *initProcess) skips(layer string) bool { return slices.Contains(in.cfg.Skip, layer) }

func (in *initProcess) fail(e *stepError) {
	r := control.FailReport{Step: e.step, Err: e.err.Error()}
	errors.As(e.err, &r.Errno)
	in.ctl.Send(control.Message{Failed: &r}) //nolint:errcheck // the supervisor is gone then
}

// setUp sets up every layer, in this order: doors and mounts (which need
// capabilities), the supervisor's go-ahead, no capabilities, the filter.
func (in *initProcess) setUp() error {
	begin, err := in.firstByte()
	if err != nil {
		return &stepError{"start", err}
	}
	b := &builder{initProcess: in}
	if begin {
		if err := b.begin(); err != nil {
			return err
		}
	}
	m, fds, err := in.ctl.Receive()
	ipc.CloseAll(fds)
	if err != nil || m.Config == nil {
		return &stepError{"configuration", errors.Join(err, io.ErrUnexpectedEOF)}
	}
	in.cfg = *m.Config
	if err := b.finish(begin); err != nil {
		return err
	}
	m, fds, err = in.ctl.Receive()
	ipc.CloseAll(fds)
	if err != nil || m.Go == nil {
		return &stepError{"go-ahead", errors.Join(err, io.ErrUnexpectedEOF)}
	}
	in.env = m.Go.Env
	switch err := in.dropCapabilities(); {
	case errors.Is(err, errOtherThreads):
		return &stepError{"privileges", in.again()}
	case err != nil:
		return &stepError{"privileges", err}
	}
	if err := in.confine(); err != nil {
		return &stepError{"privileges", err}
	}
	return nil
}

// firstByte reads whether to begin at once. Before it the ids of the user
// namespace may not be mapped.
func (in *initProcess) firstByte() (begin bool, err error) {
	var b [1]byte
	for {
		n, err := unix.Read(controlFD, b[:])
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return false, err
		case n == 0:
			return false, io.ErrUnexpectedEOF
		case b[0] != spawn.Wait && b[0] != spawn.Begin:
			return false, errors.New("the first byte says neither to begin nor to wait")
		default:
			return b[0] == spawn.Begin, nil
		}
	}
}

// openTerminal opens the program's terminal, if there is one, once more.
func (in *initProcess) openTerminal() {
	if f, err := os.OpenFile("/dev/tty", os.O_RDWR|unix.O_NOCTTY, 0); err == nil {
		in.tty = f
	}
}

// again executes this program a second time, which leaves only this thread's
// (empty) capabilities. It returns only when that failed.
func (in *initProcess) again() error {
	state := control.HandOver{Config: in.cfg, Env: in.env}
	data, err := state.Encode()
	if err != nil {
		return err
	}
	fd, err := unix.MemfdCreate("state", 0)
	if err != nil {
		return fmt.Errorf("memfd: %w", err)
	}
	f := os.NewFile(uintptr(fd), "state")
	if _, err := f.WriteAt(data, 0); err != nil {
		return err
	}
	if _, err := unix.FcntlInt(controlFD, unix.F_SETFD, 0); err != nil {
		return err
	}
	if fd == handOverFD {
		_, err = unix.FcntlInt(handOverFD, unix.F_SETFD, 0)
	} else {
		err = unix.Dup3(fd, handOverFD, 0)
	}
	if err != nil {
		return err
	}
	return syscall.Exec("/proc/self/exe", []string{spawn.Name, "again"}, []string{})
}

// takeOver goes on after the second execve.
func (in *initProcess) takeOver() error {
	f := os.NewFile(handOverFD, "state")
	defer f.Close()
	data, err := io.ReadAll(io.NewSectionReader(f, 0, control.MaxBytes))
	if err != nil {
		return &stepError{"hand-over", err}
	}
	var state control.HandOver
	if err := state.Decode(data); err != nil {
		return &stepError{"hand-over", err}
	}
	in.cfg, in.env = state.Config, state.Env
	in.openTerminal()
	if err := in.confine(); err != nil {
		return &stepError{"privileges", err}
	}
	return nil
}

package process

import (
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"egressd/internal/linux/foreground"
)

// The program is a job of its own on the launcher's terminal, as if a shell had
// started it: its process group holds the terminal, so Ctrl-C, Ctrl-Z and a resize
// reach it and not the launcher. When it stops, the launcher stops its own group,
// so the person's shell sees one stopped job; when that is resumed, so is the
// program.
//
// Threat: in the launcher's own group, the program could signal the launcher and
// whatever shares a pipeline with it ("kill 0") -> it is never in that group. Left
// over: nothing.

// terminal is the launcher's controlling terminal.
type terminal struct {
	f       *os.File
	state   *unix.Termios // when the launcher started
	shared  bool          // others could open it then (no TIOCEXCL)
	granted bool          // the program got the terminal
}

// openTerminal reports the controlling terminal, nil if there is none.
func openTerminal() *terminal {
	f, err := os.OpenFile("/dev/tty", os.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	t := &terminal{f: f}
	t.state, _ = unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS) // nil: nothing to restore
	exclusive, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCGEXCL)
	t.shared = err == nil && exclusive == 0
	return t
}

// owned reports whether the launcher's group holds the terminal.
func (t *terminal) owned() bool {
	return t != nil && foreground.Of(t.f) == unix.Getpgrp()
}

// takeBack gives the terminal back to the launcher's group when it is held by
// a group that is gone, and undoes what a killed program left (raw mode).
func (t *terminal) takeBack(restore bool) {
	if t == nil {
		return
	}
	defer t.f.Close()
	fd := int(t.f.Fd())
	if t.shared {
		// Else nobody could open this terminal any more: no sudo, no ssh.
		unix.IoctlSetInt(fd, unix.TIOCNXCL, 0) //nolint:errcheck // the terminal is gone
	}
	if !t.granted {
		return
	}
	if g := foreground.Of(t.f); g != unix.Getpgrp() {
		if g > 0 && unix.Kill(-g, 0) == nil {
			return // somebody else's by now: the person's shell
		}
		foreground.Set(t.f, unix.Getpgrp())
	}
	if restore && t.state != nil {
		foreground.Quietly(func() { unix.IoctlSetTermios(fd, unix.TCSETS, t.state) }) //nolint:errcheck // best effort
	}
}

// stopSelf stops the launcher's process group with sig, as the terminal would
// have, and returns when it goes on. The kernel does not stop a group that
// nobody could wake up; then it returns at once.
func stopSelf(sig syscall.Signal) {
	resumed := make(chan os.Signal, 1)
	signal.Notify(resumed, syscall.SIGCONT)
	defer signal.Stop(resumed)
	if unix.Kill(0, sig) != nil {
		return
	}
	select {
	case <-resumed:
	case <-time.After(100 * time.Millisecond): // the group did not stop
	}
}

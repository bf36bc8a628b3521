// Package relay stands between the terminal of a person and the pseudo-terminal of
// a confined program:
//
//	t, err := relay.Find([3]*os.File{os.Stdin, os.Stdout, os.Stderr})
//	defer t.Close()
//	... start the program on a pseudo-terminal, whose master is m ...
//	r, err := relay.Start(t, m)
//	r.Grant()                      // keys go to the program
//	err = r.Hold(ctx); r.Release() // the terminal is the caller's meanwhile
//	r.Revoke()                     // before this process stops
//	r.End()                        // the program is gone
//
// Keys are read only between Grant and Revoke; output is shown all the time. It
// works with system calls that wait, not with Go's poller, which takes as long again
// for each chunk.
package relay

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"egressd/internal/linux/foreground"
)

// Terminal is the terminal of the person who started this process.
type Terminal struct {
	fd   int
	keys bool // they are this process's to read
	job  bool // it is the controlling terminal of this process
}

// ErrMany means that the standard files are terminals, but not the same one.
var ErrMany = errors.New("the standard files are different terminals, and a program gets one: put a pipe in between, such as: launch ... | cat")

// Find reports the terminal among files, standard input, output and error; nil if
// none of them is one. The caller closes it; files stay as they are.
func Find(files [3]*os.File) (*Terminal, error) {
	var first *os.File
	var device int
	for _, f := range files {
		if !foreground.IsTerminal(f) {
			continue
		}
		d, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCGDEV)
		if err != nil {
			return nil, fmt.Errorf("terminal: %w", err)
		}
		if first != nil && d != device {
			return nil, ErrMany
		}
		if first == nil {
			first, device = f, d
		}
	}
	if first == nil {
		return nil, nil
	}
	// Opened anew: not to wait must not be said of what the shell has open.
	const flags = unix.O_RDWR | unix.O_NOCTTY | unix.O_NONBLOCK | unix.O_CLOEXEC
	if fd, err := unix.Open("/dev/tty", flags, 0); err == nil {
		if d, err := unix.IoctlGetInt(fd, unix.TIOCGDEV); err == nil && d == device {
			return &Terminal{fd: fd, keys: true, job: true}, nil
		}
		unix.Close(fd)
	}
	// Not the controlling one (su without a session, setsid): others may be there to
	// read it, so it is read only where it is the standard input.
	t := &Terminal{keys: first == files[0]}
	var err error
	if t.fd, err = unix.Open("/proc/self/fd/"+strconv.Itoa(int(first.Fd())), flags, 0); err != nil {
		t.fd, err = unix.FcntlInt(first.Fd(), unix.F_DUPFD_CLOEXEC, 3) // another user's
	}
	if err != nil {
		return nil, fmt.Errorf("terminal: %w", err)
	}
	return t, nil
}

// Close closes the terminal. A nil Terminal needs none.
func (t *Terminal) Close() {
	if t != nil {
		unix.Close(t.fd)
	}
}

// Foreground reports whether this process may read the terminal and set its modes.
func (t *Terminal) Foreground() bool {
	if t == nil || !t.job {
		return t != nil
	}
	return foreground.Of(t.fd) == unix.Getpgrp()
}

// set sets the modes of the terminal. One that hung up has none.
func (t *Terminal) set(mode *unix.Termios) {
	foreground.Quietly(func() { unix.IoctlSetTermios(t.fd, unix.TCSETS, mode) }) //nolint:errcheck // hung up
}

// raw is mode m without anything that the kernel does to keys and output: the
// program's own terminal does that. Where others share the terminal with it in a
// pipeline, they keep their line ends and their Ctrl-C.
func raw(m unix.Termios, shared bool) unix.Termios {
	m.Iflag &^= unix.IGNBRK | unix.BRKINT | unix.PARMRK | unix.ISTRIP | unix.INLCR | unix.IGNCR | unix.ICRNL | unix.IXON
	m.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.IEXTEN
	m.Cflag = m.Cflag&^(unix.CSIZE|unix.PARENB) | unix.CS8
	m.Cc[unix.VMIN], m.Cc[unix.VTIME] = 1, 0
	if !shared {
		m.Lflag &^= unix.ISIG
		m.Oflag &^= unix.OPOST
	}
	return m
}

package pty

import (
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// Open makes a pseudo-terminal. The caller closes both ends; neither becomes a
// controlling terminal. A Close ends a Read of the same end: both are non-blocking,
// which a program that gets one does not expect, see Blocking.
func Open() (master, slave *os.File, err error) {
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("/dev/ptmx", err)
	}
	master = os.NewFile(uintptr(fd), "/dev/ptmx") // #nosec: a descriptor
	defer func() {
		if err != nil {
			_ = master.Close()
		}
	}()
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		return nil, nil, os.NewSyscallError("TIOCSPTLCK", err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		return nil, nil, os.NewSyscallError("TIOCGPTN", err)
	}
	slave, err = os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|syscall.O_NOCTTY|syscall.O_NONBLOCK, 0)
	return master, slave, err
}

// control calls fn with the descriptor of f.
func control(f *os.File, fn func(fd int) error) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	if err := raw.Control(func(fd uintptr) { failed = fn(int(fd)) }); err != nil { // #nosec: a descriptor
		return err
	}
	return failed
}

// Blocking makes f what programs expect. A Close no longer ends a Read of it.
func Blocking(f *os.File) error {
	return control(f, func(fd int) error { return unix.SetNonblock(fd, false) })
}

// SetSize gives a terminal that size, at either end. Programs on it are told.
func SetSize(f *os.File, s Size) error {
	return control(f, func(fd int) error {
		return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Col: s.Cols, Row: s.Rows})
	})
}

// GetSize reports the size of a terminal.
func GetSize(f *os.File) (s Size, err error) {
	err = control(f, func(fd int) error {
		w, err := unix.IoctlGetWinsize(fd, unix.TIOCGWINSZ)
		if err == nil {
			s = Size{Cols: w.Col, Rows: w.Row}
		}
		return err
	})
	return s, err
}

// Raw lets every byte through a terminal as it is, in both directions.
func Raw(f *os.File) error {
	return control(f, func(fd int) error {
		t, err := unix.IoctlGetTermios(fd, unix.TCGETS)
		if err != nil {
			return err
		}
		t.Iflag, t.Oflag, t.Lflag = 0, 0, 0
		t.Cflag = t.Cflag&^(unix.CSIZE|unix.PARENB) | unix.CS8
		t.Cc[unix.VMIN], t.Cc[unix.VTIME] = 1, 0
		return unix.IoctlSetTermios(fd, unix.TCSETS, t)
	})
}

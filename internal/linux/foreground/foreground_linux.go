// Package foreground reads and sets which process group holds a terminal:
//
//	if foreground.Of(fd) != unix.Getpgrp() {
//		foreground.Set(fd, unix.Getpgrp())
//	}
package foreground

import (
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// IsTerminal reports whether f is a terminal.
func IsTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

// Of reports the process group that holds terminal fd: 0 if it is in another
// process namespace, -1 if fd is not the controlling terminal of this process.
func Of(fd int) int {
	g, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP)
	if err != nil {
		return -1
	}
	return g
}

// Set gives terminal fd to group. The caller may be in the background. If the
// terminal is gone, nothing happens.
func Set(fd, group int) {
	Quietly(func() { unix.IoctlSetPointerInt(fd, unix.TIOCSPGRP, group) }) //nolint:errcheck // the terminal is gone
}

// Quietly runs fn, which changes the terminal, with SIGTTOU blocked: it would
// stop a process in the background.
func Quietly(fn func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var set, old unix.Sigset_t
	set.Val[0] = 1 << (uint(unix.SIGTTOU) - 1)
	if unix.PthreadSigmask(unix.SIG_BLOCK, &set, &old) != nil {
		return
	}
	fn()
	unix.PthreadSigmask(unix.SIG_SETMASK, &old, nil) //nolint:errcheck // restores what it just reported
}

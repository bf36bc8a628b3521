package daemon

import (
	"errors"
	"log/slog"
	"runtime"

	"golang.org/x/sys/unix"

	"egressd/internal/linux/seccomp"
)

// harden closes this process off from others of the same user.
//
// Threat: an agent that runs as the daemon's user, in a container that shares its
// process namespace, reads secrets and keys from /proc/PID/mem, attaches to the
// daemon, or takes its sockets with pidfd_getfd -> the process is not dumpable, so
// the kernel wants CAP_SYS_PTRACE for all of these; it writes no core file either.
// Left over: the same user can still send it signals. Give the agent another user.
func harden(log *slog.Logger) {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		log.Warn("other processes of this user can look into egressd", "err", err)
	}
}

// confine gives up, once every listener is open, what the daemon no longer needs.
//
// Threat: an attacker who takes the daemon over, by a bug in what reads clients'
// bytes, starts programs and looks into other processes of its user -> it can
// start no program, and the system calls that sandboxed programs may not make are
// closed to it, too, in every thread. Left over: the daemon's own files and
// connections, which it needs.
func confine(log *slog.Logger) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) // the filter sets it in the other threads
	if err == nil {
		err = seccomp.InstallDaemon()
	}
	switch {
	case errors.Is(err, seccomp.ErrNotSupported):
		log.Info("this system has no system-call filter; egressd runs without", "err", err)
	case err != nil:
		log.Warn("egressd runs without a system-call filter", "err", err)
	}
}

// openFiles reports how many descriptors this process may have; 0: unknown. The Go
// runtime has raised the soft limit to the hard one.
func openFiles() uint64 {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		return 0
	}
	return l.Cur
}

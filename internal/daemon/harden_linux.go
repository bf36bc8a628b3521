package daemon

import (
	"log/slog"
	"syscall"

	"golang.org/x/sys/unix"
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
	// It starts no program; one that it was tricked into starting gets no rights.
	if _, _, err := syscall.AllThreadsSyscall(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0); err != 0 && err != syscall.ENOTSUP {
		log.Warn("no_new_privs could not be set", "err", err) // ENOTSUP: a build with cgo
	}
}

// openFiles reports how many descriptors this process may have; 0: not known. The
// Go runtime has raised the soft limit to the hard one.
func openFiles() uint64 {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		return 0
	}
	return l.Cur
}

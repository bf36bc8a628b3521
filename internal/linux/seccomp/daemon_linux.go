//go:build linux && (amd64 || arm64)

package seccomp

import "golang.org/x/sys/unix"

// InstallDaemon loads the filter of a daemon that holds all its listeners: it
// refuses what Install refuses, and to start programs or to read others' memory.
// It holds for every thread, and nothing can remove it. The calling thread has
// set no_new_privs or holds CAP_SYS_ADMIN.
func InstallDaemon() error { return install(filter(append(Options{}.rules(), daemonRules()...))) }

// daemonRules are for a program of one process.
func daemonRules() []rule {
	eperm := refuse(unix.EPERM)
	return []rule{
		{"execve", unix.SYS_EXECVE, eperm, "a shell for whoever took the daemon over"},
		{"execveat", unix.SYS_EXECVEAT, eperm, "as execve"},
		{"ptrace", unix.SYS_PTRACE, eperm, "other programs of the same user"},
		{"process_vm_readv", unix.SYS_PROCESS_VM_READV, eperm, "as ptrace"},
		{"process_vm_writev", unix.SYS_PROCESS_VM_WRITEV, eperm, "as ptrace"},
		{"pidfd_getfd", unix.SYS_PIDFD_GETFD, eperm, "as ptrace"},
	}
}

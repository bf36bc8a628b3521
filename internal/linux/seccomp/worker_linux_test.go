//go:build linux && (amd64 || arm64)

package seccomp

import (
	"testing"

	"golang.org/x/sys/unix"
)

// A worker computes, and reads and writes what it is let at; it makes no socket,
// no process and no code, and what nobody listed is refused.
func TestWorkerFilter(t *testing.T) {
	const pid = 4711
	f := workerFilter(pid)
	if len(f) > 4096 {
		t.Errorf("%d instructions", len(f))
	}
	const (
		goThread = unix.CLONE_VM | unix.CLONE_FS | unix.CLONE_FILES | unix.CLONE_SIGHAND | unix.CLONE_SYSVSEM | unix.CLONE_THREAD
		cThread  = goThread | unix.CLONE_SETTLS | unix.CLONE_PARENT_SETTID | unix.CLONE_CHILD_CLEARTID
		high     = 1 << 32 // the upper half of an argument that the kernel takes for an int
	)
	for _, tt := range []struct {
		name string
		call call
		want uint32
	}{
		{"read", native(unix.SYS_READ), retAllow},
		{"openat", native(unix.SYS_OPENAT), retAllow},
		{"recvmsg", native(unix.SYS_RECVMSG), retAllow},
		{"a thread of the Go runtime", native(unix.SYS_CLONE, goThread), retAllow},
		{"a thread of a C library", native(unix.SYS_CLONE, cThread), retAllow},
		{"a signal to itself", native(unix.SYS_TGKILL, pid, pid, 1), retAllow},
		{"memory", native(unix.SYS_MMAP, 0, 4096, unix.PROT_READ|unix.PROT_WRITE), retAllow},
		{"is it a terminal", native(unix.SYS_IOCTL, 0, unix.TCGETS), retAllow},
		{"its own limits", native(unix.SYS_PRLIMIT64, 0), retAllow},

		{"socket", native(unix.SYS_SOCKET, unix.AF_UNIX), errno(unix.EPERM)},
		{"connect", native(unix.SYS_CONNECT), errno(unix.EPERM)},
		{"sendto", native(unix.SYS_SENDTO), errno(unix.EPERM)},
		{"execve", native(unix.SYS_EXECVE), errno(unix.EPERM)},
		{"a process", native(unix.SYS_CLONE, uint64(unix.SIGCHLD)), errno(unix.EPERM)},
		{"a process in its memory", native(unix.SYS_CLONE, unix.CLONE_VM|unix.CLONE_VFORK|uint64(unix.SIGCHLD)), errno(unix.EPERM)},
		{"a thread in a new namespace", native(unix.SYS_CLONE, goThread|unix.CLONE_NEWNET), errno(unix.EPERM)},
		{"a thread without its files", native(unix.SYS_CLONE, goThread&^unix.CLONE_FILES), errno(unix.EPERM)},
		{"clone3", native(unix.SYS_CLONE3), errno(unix.ENOSYS)},
		{"a signal to another", native(unix.SYS_TGKILL, pid+1, pid+1, 1), errno(unix.EPERM)},
		{"a signal to a group", native(unix.SYS_TGKILL, 0xffffffff, 1, 1), errno(unix.EPERM)},
		{"kill", native(unix.SYS_KILL, pid, 9), errno(unix.EPERM)},
		{"code", native(unix.SYS_MMAP, 0, 4096, unix.PROT_READ|unix.PROT_EXEC), errno(unix.EPERM)},
		{"code, spelled oddly", native(unix.SYS_MMAP, 0, 4096, high|unix.PROT_EXEC), errno(unix.EPERM)},
		{"code of memory", native(unix.SYS_MPROTECT, 0, 4096, unix.PROT_EXEC), errno(unix.EPERM)},
		{"typing", native(unix.SYS_IOCTL, 0, unix.TIOCSTI), errno(unix.ENOTTY)},
		{"typing, spelled oddly", native(unix.SYS_IOCTL, 0, high|unix.TIOCSTI), errno(unix.ENOTTY)},
		{"an owner", native(unix.SYS_FCNTL, 0, unix.F_SETOWN), errno(unix.EPERM)},
		{"limits of another", native(unix.SYS_PRLIMIT64, pid+1), errno(unix.EPERM)},
		{"ptrace", native(unix.SYS_PTRACE), errno(unix.EPERM)},
		{"prctl", native(unix.SYS_PRCTL), errno(unix.EPERM)},
		{"mount", native(unix.SYS_MOUNT), errno(unix.EPERM)},
		{"truncate by name", native(unix.SYS_TRUNCATE), errno(unix.EPERM)},
		{"io_uring", native(unix.SYS_IO_URING_SETUP), errno(unix.ENOSYS)},
		{"a call of the future", native(900), errno(unix.EPERM)},
		{"another architecture", call{arch: nativeArch ^ 1, nr: unix.SYS_READ}, retKill},
	} {
		if got := judge(t, f, tt.call); got != tt.want {
			t.Errorf("%s: %#x, want %#x", tt.name, got, tt.want)
		}
	}
}

//go:build linux && (amd64 || arm64)

package seccomp

import (
	"testing"

	"golang.org/x/sys/unix"
)

// A daemon starts nothing and looks into nobody, besides what a harness may not;
// it still serves, and starts threads.
func TestDaemon(t *testing.T) {
	f := filter(append(Options{}.rules(), daemonRules()...))
	if len(f) > 4096 {
		t.Errorf("%d instructions", len(f))
	}
	for _, n := range []uint32{unix.SYS_EXECVE, unix.SYS_EXECVEAT, unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PIDFD_GETFD, unix.SYS_MOUNT, unix.SYS_SETNS, unix.SYS_BPF} {
		if got := judge(t, f, native(n)); got != errno(unix.EPERM) {
			t.Errorf("call %d: %#x", n, got)
		}
	}
	const threads = unix.CLONE_VM | unix.CLONE_FS | unix.CLONE_FILES | unix.CLONE_SIGHAND | unix.CLONE_SYSVSEM | unix.CLONE_THREAD // as the Go runtime starts them
	for _, c := range []call{
		native(unix.SYS_ACCEPT4), native(unix.SYS_CONNECT), native(unix.SYS_SENDMSG), native(unix.SYS_SPLICE), native(unix.SYS_RENAMEAT), native(unix.SYS_INOTIFY_ADD_WATCH),
		native(unix.SYS_SOCKET, unix.AF_INET6, unix.SOCK_STREAM), native(unix.SYS_SOCKET, unix.AF_UNIX, unix.SOCK_DGRAM), native(unix.SYS_CLONE, threads),
	} {
		if got := judge(t, f, c); got != retAllow {
			t.Errorf("call %+v: %#x", c, got)
		}
	}
}

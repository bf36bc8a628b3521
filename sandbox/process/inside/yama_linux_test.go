package inside

import (
	"errors"
	"os"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// refuseGetfd makes pidfd_getfd fail for this thread as Yama makes it fail. The
// thread ends with the test's goroutine.
func refuseGetfd(t *testing.T) {
	t.Helper()
	runtime.LockOSThread()
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}, // the number of the call
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_PIDFD_GETFD, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	if err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&prog)), 0, 0); err != nil {
		t.Skipf("this kernel has no system-call filters: %v", err)
	}
}

func scopeFile(t *testing.T, value string) string {
	t.Helper()
	path := t.TempDir() + "/ptrace_scope"
	if err := os.WriteFile(path, []byte(value), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// The scope alone refuses nothing: what counts is whether it works.
func TestMayTrace(t *testing.T) {
	if n, err := os.ReadFile(yamaScope); err == nil && n[0] >= '2' {
		t.Skip("Yama forbids it here")
	}
	for _, value := range []string{"0\n", "1\n", "2\n", "3\n", "x\n", ""} {
		if err := mayTrace(scopeFile(t, value)); err != nil {
			t.Errorf("%q: %v", value, err)
		}
	}
	if err := mayTrace(t.TempDir() + "/none"); err != nil {
		t.Errorf("a kernel without Yama: %v", err)
	}
}

// Where the kernel refuses, the start does, and says what to type.
func TestMayNotTrace(t *testing.T) {
	refuseGetfd(t)
	for value, words := range map[string][]string{
		"2\n": {"kernel.yama.ptrace_scope is 2", "sudo sysctl -w kernel.yama.ptrace_scope=1)"},
		"3\n": {"kernel.yama.ptrace_scope is 3", "/etc/sysctl.d"},
	} {
		err := mayTrace(scopeFile(t, value))
		if !errors.Is(err, unix.EPERM) {
			t.Fatalf("%q: %v", value, err)
		}
		for _, w := range words {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%q: %v lacks %q", value, err, w)
			}
		}
	}
	if err := mayTrace(scopeFile(t, "1\n")); err != nil {
		t.Errorf("a scope that lets a parent look costs no try: %v", err)
	}
	var status unix.WaitStatus
	if pid, err := unix.Wait4(-1, &status, unix.WNOHANG, nil); !errors.Is(err, unix.ECHILD) {
		t.Errorf("a child is left: %d, %v", pid, err)
	}
}

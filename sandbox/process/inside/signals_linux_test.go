package inside

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

const signalsEnv = "INSIDE_TEST_SIGNALS"

// A signal with its default action ends pid 1 if it comes while the first
// thread blocks it, which it does whenever Go forks. So none may have it, and
// the program that is forked must have them all.
func TestNoSignalKeepsItsDefault(t *testing.T) {
	if os.Getenv(signalsEnv) != "" {
		outliveSignals()
		own, err := os.ReadFile("/proc/self/status")
		if err != nil {
			t.Fatal(err)
		}
		fmt.Printf("init\n%s", own)
		pid, err := syscall.ForkExec("/bin/sh", []string{"sh", "-c", "echo program; exec cat /proc/self/status"}, &syscall.ProcAttr{Files: []uintptr{0, 1, 2}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := syscall.Wait4(pid, nil, 0, nil); err != nil {
			t.Fatal(err)
		}
		return
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestNoSignalKeepsItsDefault$")
	cmd.Env = append(os.Environ(), signalsEnv+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	own, program, ok := strings.Cut(string(out), "program\n")
	if !ok {
		t.Fatalf("%s", out)
	}
	const ours = 1<<(32-1) | 1<<(perThreadCall-1) | 1<<(34-1) // whose handlers return, unlike most of Go's
	safe := mask(t, own, "SigIgn") | mask(t, own, "SigCgt")&ours
	for s := unix.Signal(1); s <= lastSignal; s++ {
		if safe&(1<<(s-1)) == 0 && !harmlessByDefault(s) {
			t.Errorf("signal %d (%v) would end pid 1", int(s), s)
		}
	}
	if before := mask(t, status(t), "SigIgn"); mask(t, program, "SigIgn") != before || mask(t, program, "SigCgt") != 0 || mask(t, program, "SigBlk") != 0 {
		t.Errorf("the program inside does not start with signals as they were (ignored: %x):\n%s", before, lines(program, "Sig"))
	}
}

// The init must still see its children end: ignoring SIGCHLD would have the
// kernel reap them, and with them the program's exit code.
func TestChildrenAreNotReapedByTheKernel(t *testing.T) {
	if now, ok := action(unix.SIGCHLD); !ok || now.handler == ignored {
		t.Fatalf("%+v, %v", now, ok)
	}
	if os.Getenv(signalsEnv) == "" {
		cmd := exec.Command("/proc/self/exe", "-test.run=^TestChildrenAreNotReapedByTheKernel$")
		cmd.Env = append(os.Environ(), signalsEnv+"=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	outliveSignals()
	pid, err := syscall.ForkExec("/bin/sh", []string{"sh", "-c", "exit 7"}, &syscall.ProcAttr{})
	if err != nil {
		t.Fatal(err)
	}
	var st syscall.WaitStatus
	if _, err := syscall.Wait4(pid, &st, 0, nil); err != nil || st.ExitStatus() != 7 {
		t.Errorf("exit %d, %v", st.ExitStatus(), err)
	}
}

// lines are those of text that begin with prefix.
func lines(text, prefix string) string {
	var b strings.Builder
	for l := range strings.Lines(text) {
		if strings.HasPrefix(l, prefix) {
			b.WriteString(l)
		}
	}
	return b.String()
}

func status(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// mask reads a set of signals from what proc_pid_status(5) says.
func mask(t *testing.T, status, field string) uint64 {
	t.Helper()
	_, rest, _ := strings.Cut(status, field+":\t")
	hex, _, _ := strings.Cut(rest, "\n")
	n, err := strconv.ParseUint(hex, 16, 64)
	if err != nil {
		t.Fatalf("%s of %q: %v", field, status, err)
	}
	return n
}

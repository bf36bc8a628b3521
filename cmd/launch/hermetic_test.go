//go:build linux

package main

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"egressd/sandbox/hermetic"
)

// startHermetic starts launch, and reports it and its worker once the script has
// said ready.
func startHermetic(t *testing.T, script string) (launch *exec.Cmd, worker int) {
	t.Helper()
	if err := hermetic.Walls(); err != nil {
		t.Skip(err)
	}
	launch = exec.CommandContext(t.Context(), "/proc/self/exe", "--tier", "hermetic", "--", "sh", "-c", script)
	launch.Args[0] = "launch"
	launch.Dir = t.TempDir()
	launch.Env = []string{}
	out, err := launch.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := launch.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		launch.Process.Kill() //nolint:errcheck // it has ended, mostly
		launch.Wait()         //nolint:errcheck // as above
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("%q, %v", line, err)
	}
	go io.Copy(io.Discard, out) //nolint:errcheck // until it ends
	tasks, err := filepath.Glob("/proc/" + strconv.Itoa(launch.Process.Pid) + "/task/*/children")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range tasks {
		text, _ := os.ReadFile(path) // the thread may be gone
		if pid, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
			return launch, pid
		}
	}
	t.Fatal("no worker")
	return nil, 0
}

// A launcher that is killed takes its worker along.
func TestWorkerDiesWithLaunch(t *testing.T) {
	launch, worker := startHermetic(t, "echo ready; while :; do sleep 1; done")
	fd, err := unix.PidfdOpen(worker, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := launch.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	ended := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := unix.Poll(ended, int(10*time.Second/time.Millisecond))
	for errors.Is(err, unix.EINTR) { // a signal of the runtime
		n, err = unix.Poll(ended, int(10*time.Second/time.Millisecond))
	}
	if n != 1 || err != nil {
		t.Errorf("the worker is still there: %d, %v", n, err)
	}
}

// The worker's command line and environment tell nothing, and nobody but root
// may look into it.
func TestWorkerTellsNothing(t *testing.T) {
	_, worker := startHermetic(t, "echo ready; SECRET=x; while :; do sleep 1; done")
	dir := "/proc/" + strconv.Itoa(worker)
	for name, want := range map[string]string{"cmdline": "launch-hermetic\x00", "environ": ""} {
		text, err := os.ReadFile(dir + "/" + name)
		if err != nil && os.Geteuid() == 0 || string(text) != want {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
	status, err := os.ReadFile(dir + "/status")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"NoNewPrivs:\t1", "Seccomp:\t2", "CapEff:\t0000000000000000", "CapPrm:\t0000000000000000"} {
		if !strings.Contains(string(status), line+"\n") {
			t.Errorf("status lacks %q:\n%s", line, status)
		}
	}
}

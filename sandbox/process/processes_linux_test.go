package process

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"egressd/sandbox"
)

// TestHostProcesses looks for the host's processes and signals them.
func TestHostProcesses(t *testing.T) {
	marker := fmt.Sprintf("86%d", os.Getpid())
	cmd := exec.CommandContext(t.Context(), "sleep", marker)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	if ok, out := attackOutside(t, "host-process", marker); !ok {
		t.Fatalf("outside it must work: %s", out)
	}
	if ok, out := attack(t, &Backend{}, sandbox.Spec{}, "host-process", marker); ok {
		t.Errorf("it worked: %s", out)
	}
	pid := strconv.Itoa(cmd.Process.Pid)
	if ok, out := attackOutside(t, "signal", pid); !ok {
		t.Fatalf("outside it must work: %s", out)
	}
	if ok, out := attack(t, &Backend{}, sandbox.Spec{}, "signal", pid); ok {
		t.Errorf("it worked: %s", out)
	}
	// "kill 0" and "kill -1" reach the program and what it started, nobody else.
	for _, target := range []string{"0", "-1"} {
		if res := sh(t, &Backend{}, "kill -9 "+target); res.err != nil || res.ExitCode != 128+9 && target == "0" {
			t.Errorf("kill %s: exit %d, %v", target, res.ExitCode, res.err)
		}
	}
	// Nothing that can be sent to pid 1 ends it.
	res := sh(t, &Backend{}, "for s in HUP INT QUIT TERM USR1 USR2 ALRM PIPE KILL STOP; do kill -$s 1; done; sleep 0.1; exit 7")
	if res.ExitCode != 7 {
		t.Errorf("signals to pid 1: exit %d (%v): %s", res.ExitCode, res.err, res.out)
	}
}

// waitGone waits until no process of this machine has marker in its command
// line.
func waitGone(t *testing.T, marker string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for findProcess(marker) == nil {
		select {
		case <-ctx.Done():
			t.Fatalf("a process with %q in its command line is still there", marker)
		case <-tick.C:
		}
	}
}

// TestSurvivors leaves daemons behind that ignore every signal they can.
func TestSurvivors(t *testing.T) {
	marker := fmt.Sprintf("87%d", os.Getpid())
	res := sh(t, &Backend{}, `
		trap "" TERM HUP INT
		setsid sh -c 'trap "" TERM HUP INT; (sleep `+marker+` &) ; sleep `+marker+`' >/dev/null 2>&1 &
		nohup sleep `+marker+` >/dev/null 2>&1 &
		exit 3`)
	if res.ExitCode != 3 || res.err != nil {
		t.Errorf("exit %d, %v: %s", res.ExitCode, res.err, res.out)
	}
	if findProcess(marker) == nil {
		t.Error("a process of the run is still there after Run")
	}
}

// TestLauncherKilled kills the launcher with what it cannot catch.
func TestLauncherKilled(t *testing.T) {
	needNamespaces(t)
	marker := fmt.Sprintf("88%d", os.Getpid())
	cmd := exec.CommandContext(t.Context(), self(t), "launch", "/bin/sh", "-c", "echo up; sleep "+marker)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 3)); err != nil {
		t.Fatal(err)
	}
	if findProcess(marker) != nil {
		t.Error("the program is not there, so this test shows nothing")
	}
	cmd.Process.Signal(syscall.SIGKILL)
	cmd.Wait()
	waitGone(t, marker)
}

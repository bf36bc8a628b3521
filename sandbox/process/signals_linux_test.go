package process

import (
	"bufio"
	"fmt"
	"os/exec"
	"syscall"
	"testing"

	"egressd/test/console"
)

// TestSignalInit sends everything that can be sent to pid 1 inside. The first
// signals come while pid 1 has just forked, if the machine is slow to go on
// with it: a race, so it is tried a few times.
func TestSignalInit(t *testing.T) {
	for range 5 {
		res := sh(t, new(Backend), `i=1; while [ $i -le 64 ]; do kill -$i 1 2>/dev/null; i=$((i+1)); done; sleep 0.1; echo alive`)
		if res.err != nil || res.ExitCode != 0 || res.out != "alive\n" {
			t.Errorf("exit code %d, %v: %.300s", res.ExitCode, res.err, res.out)
		}
	}
}

// What the inside does to the terminal must not outlast it.
func TestTerminalExclusive(t *testing.T) {
	python := needPython(t)
	c := console.Start(t, console.Options{}, "/bin/sh", "-c", self(t)+` launch `+python+` -c 'import fcntl, termios; fcntl.ioctl(0, termios.TIOCEXCL)'; true >/dev/tty && echo "op""en"`)
	c.Expect("open")
}

// Files of the run are for every user inside, whatever the launcher's umask.
func TestUmask(t *testing.T) {
	needNamespaces(t)
	old := syscall.Umask(0o777)
	defer syscall.Umask(old)
	res := sh(t, new(Backend), "stat -c %a /run/egressd/resolv.conf")
	if res.err != nil || res.out != "444\n" {
		t.Errorf("%q, %v", res.out, res.err)
	}
}

// TestStartedIgnoring runs TestSignals where signals are ignored when the tests
// start, as under nohup.
func TestStartedIgnoring(t *testing.T) {
	needNamespaces(t)
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", `trap "" HUP INT QUIT; exec "$@"`, "sh", self(t), "-test.run=^TestSignals$", "-test.timeout=60s")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestSignals sends the launcher what it must forward.
func TestSignals(t *testing.T) {
	needNamespaces(t)
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGQUIT} {
		t.Run(sig.String(), func(t *testing.T) {
			script := fmt.Sprintf(`trap "echo got; exit 6" %d; echo up; while :; do sleep 0.05; done`, int(sig))
			cmd := exec.CommandContext(t.Context(), self(t), "launch", "/bin/sh", "-c", script)
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewScanner(out)
			lines.Scan()
			if err := cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			lines.Scan()
			cmd.Wait()
			if cmd.ProcessState.ExitCode() != 6 || lines.Text() != "got" {
				t.Errorf("exit %d, %q", cmd.ProcessState.ExitCode(), lines.Text())
			}
		})
	}
}

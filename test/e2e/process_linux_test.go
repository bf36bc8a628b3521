package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// started is a process that a test keeps an eye on.
type started struct {
	cmd    *exec.Cmd
	done   chan struct{}
	stderr *bytes.Buffer
}

func (p started) alive() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

func (p started) kill(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-p.done
}

// waitFor waits until a process with mark in its command line runs, twice: the
// launcher's own command line holds it too.
func (p started) waitFor(t *testing.T, mark string) {
	t.Helper()
	p.waitLong(t, mark, 10*time.Second)
}

func (p started) waitLong(t *testing.T, mark string, most time.Duration) {
	t.Helper()
	deadline := time.NewTimer(most)
	defer deadline.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for running(t, mark) == 0 {
		select {
		case <-p.done:
			t.Fatalf("ended early: %s", p.stderr)
		case <-deadline.C:
			t.Fatal("the program inside did not start in time")
		case <-tick.C:
		}
	}
}

// running counts processes whose own argument list, not a launcher's, begins
// with the probe and holds mark.
func running(t *testing.T, mark string) int {
	t.Helper()
	dirs, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, d := range dirs {
		line, err := os.ReadFile("/proc/" + d.Name() + "/cmdline")
		if err == nil && strings.HasPrefix(string(line), env.probe+"\x00linger\x00"+mark) {
			n++
		}
	}
	return n
}

// startBystander runs a process of the same person outside the sandbox.
func startBystander(t *testing.T, who person) started {
	t.Helper()
	return start(t, who, []string{env.probe, "linger", token("bystander", who.uid), ""})
}

// startLaunch runs argv under launch and does not wait for it.
func startLaunch(t *testing.T, who person, argv ...string) started {
	t.Helper()
	s := session{who: who, argv: argv}
	return start(t, who, s.command(filepath.Join(who.home(t), "events.jsonl")))
}

func start(t *testing.T, who person, argv []string) started {
	t.Helper()
	cmd := exec.Command(argv[0], argv[1:]...)
	home := who.home(t)
	cmd.Dir = home
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: who.cred, Setpgid: true}
	p := started{cmd: cmd, done: make(chan struct{}), stderr: &bytes.Buffer{}}
	cmd.Stderr = p.stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = cmd.Wait() // killed by the test
		close(p.done)
	}()
	t.Cleanup(func() {
		_ = unix.Kill(cmd.Process.Pid, unix.SIGKILL) // over already: as good
		<-p.done
	})
	return p
}

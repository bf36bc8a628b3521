package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// daemonUID is egressd's user in its image, whom capture exempts.
const daemonUID = 65532

// daemon is an egressd that runs until the test ends it.
type daemon struct {
	cmd    *exec.Cmd
	args   []string
	dir    string
	events string // file
	log    *transcript
	ended  chan struct{}
}

// transcript keeps what a program says, and tells when it has said a word.
type transcript struct {
	mu    sync.Mutex
	text  bytes.Buffer
	word  string
	heard chan struct{} // closed at the word
}

func (l *transcript) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(b)
	if l.word != "" && bytes.Contains(l.text.Bytes(), []byte(l.word)) {
		l.word = ""
		close(l.heard)
	}
	return len(b), nil
}

func (l *transcript) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// last reports the last n bytes.
func (l *transcript) last(n int) string {
	s := l.String()
	return s[max(0, len(s)-n):]
}

// daemonDir makes a directory of the daemon's own.
func daemonDir(t *testing.T) string {
	t.Helper()
	uid := os.Geteuid()
	if uid == 0 {
		uid = daemonUID
	}
	return person{uid: uid}.home(t)
}

// startDaemon starts egressd with args, in where's namespace or, without
// where, in the world's, and returns when it is ready. As root it runs as
// daemonUID unless it has to enter a namespace.
func startDaemon(t *testing.T, where *pod, dir string, environ []string, args ...string) *daemon {
	t.Helper()
	d := &daemon{args: args, dir: dir, events: filepath.Join(dir, "events.jsonl"), ended: make(chan struct{})}
	d.log = &transcript{word: "msg=ready", heard: make(chan struct{})}
	d.cmd = exec.Command(env.daemon, append([]string{"--dns-upstream", upstreamDNS, "--events", d.events}, args...)...)
	d.cmd.Dir = dir
	d.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir}, environ...)
	d.cmd.Stdout, d.cmd.Stderr = d.log, d.log
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var err error
	if where != nil {
		d.cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
		if os.Geteuid() == 0 {
			d.cmd.SysProcAttr.Credential = &syscall.Credential{Uid: daemonUID, Gid: daemonUID}
		}
		where.do(func() { err = d.cmd.Start() })
	} else {
		err = d.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	go d.reap()
	t.Cleanup(func() {
		d.kill()
		if t.Failed() {
			t.Logf("egressd %v:\n%s", args, d.log.last(600))
		}
	})
	select {
	case <-d.log.heard:
	case <-d.ended:
		t.Fatalf("egressd %v ended:\n%s", args, d.log)
	case <-time.After(30 * time.Second):
		t.Fatalf("egressd %v is not ready:\n%s", args, d.log)
	}
	return d
}

func (d *daemon) reap() {
	_ = d.cmd.Wait() // the state says it
	close(d.ended)
}

// kill ends the daemon as the kernel would, and returns when it is gone.
func (d *daemon) kill() {
	select {
	case <-d.ended:
	default:
		_ = unix.Kill(d.cmd.Process.Pid, unix.SIGKILL) // it may just have ended
		<-d.ended
	}
}

// stop drains the daemon and reports its exit code.
func (d *daemon) stop(t *testing.T) int {
	t.Helper()
	_ = d.cmd.Process.Signal(syscall.SIGTERM) // when it has ended, its code says so
	select {
	case <-d.ended:
	case <-time.After(60 * time.Second):
		_ = d.cmd.Process.Signal(syscall.SIGQUIT) // its goroutines are worth reading
		<-d.ended
		t.Fatalf("egressd did not stop:\n%.20000s", d.log)
	}
	return d.cmd.ProcessState.ExitCode()
}

// capture runs egressd capture in the pod.
func (p *pod) capture(t *testing.T, args ...string) {
	t.Helper()
	p.do(func() {
		cmd := exec.Command(env.daemon, append([]string{"capture"}, args...)...)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("egressd capture: %v: %s", err, out)
		}
	})
	if t.Failed() {
		t.FailNow()
	}
}

// podProbe is the session's probe inside the pod, without capabilities.
func (p *pod) runProbe(t *testing.T, s session) ended {
	t.Helper()
	s.plain, s.in = true, p
	s.who.bare = true
	s.env = append([]string{"https_proxy=http://127.0.0.1:3128"}, s.env...)
	e := s.run(t)
	if e.code != 0 {
		t.Errorf("the probe ended with %d: %s", e.code, strings.TrimSpace(e.stderr))
	}
	return e
}

package handover

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"egressd/event/eventtest"
)

// Users of the tests that run as root; others run everything as themselves.
const (
	daemonUser   = 65532
	launcherUser = 65533
	strangerUser = 65534
)

// built is the binaries, made once.
var built struct {
	once sync.Once
	base string // directory of this run, open to everybody for reading
	err  error
}

// binaries builds launch and egressd where every user can run them. The probe
// is this test.
func binaries(t *testing.T) string {
	t.Helper()
	built.once.Do(func() {
		if built.base, built.err = os.MkdirTemp("", "egressd-session-"); built.err != nil {
			return
		}
		self, err := os.ReadFile("/proc/self/exe")
		built.err = errors.Join(err, os.Chmod(built.base, 0o755), os.WriteFile(filepath.Join(built.base, "probe"), self, 0o755))
		out, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", built.base, "egressd/cmd/launch", "egressd/cmd/egressd").CombinedOutput()
		if err != nil {
			built.err = errors.Join(built.err, fmt.Errorf("build: %w\n%s", err, out))
		}
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	return built.base
}

// real is one egressd, a place for it, and an origin.
type real struct {
	t      *testing.T
	bin    string
	dir    string // the daemon's
	socket string
	port   uint16 // of the origin, on the loopback
	daemon *exec.Cmd
	log    *lines
	ended  chan struct{}
}

// lines keeps what a program writes.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// waitFor waits until l holds text.
func (l *lines) waitFor(t *testing.T, text string) {
	t.Helper()
	for limit := time.Now().Add(patience); !strings.Contains(l.String(), text); wait(t.Context(), 5*time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("no %q in\n%s", text, l)
		}
	}
}

func isRoot() bool { return os.Geteuid() == 0 }

// as makes cmd run as a user of its own when the tests run as root.
func as(cmd *exec.Cmd, uid uint32, groups ...uint32) {
	if isRoot() {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid, Groups: groups}}
	}
}

// place makes a directory of user uid.
func place(t *testing.T, uid int, mode os.FileMode) string {
	t.Helper()
	dir, err := os.MkdirTemp(binaries(t), "d")
	if err != nil {
		t.Fatal(err)
	}
	err = os.Chmod(dir, mode)
	if isRoot() {
		err = errors.Join(err, os.Chown(dir, uid, uid))
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// startReal starts an origin and egressd with ceiling, in which ORIGIN stands
// for the origin's port.
func startReal(t *testing.T, ceiling string, args ...string) *real {
	t.Helper()
	r := &real{t: t, bin: binaries(t), dir: place(t, daemonUser, 0o750), log: new(lines), ended: make(chan struct{})}
	r.socket = filepath.Join(r.dir, "control.sock")
	r.port = webOrigin(t)
	r.write("policy.yaml", ceiling)
	r.daemon = exec.Command(filepath.Join(r.bin, "egressd"), append([]string{
		"--policy", filepath.Join(r.dir, "policy.yaml"), "--listen", "none",
		"--control", "unix:" + r.socket, "--events", filepath.Join(r.dir, "events.jsonl"),
	}, args...)...)
	r.daemon.Env = []string{"DAEMON_SECRET=of-the-daemon"}
	r.daemon.Stderr = r.log
	as(r.daemon, daemonUser)
	if err := r.daemon.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = r.daemon.Wait() // tests kill it
		close(r.ended)
	}()
	t.Cleanup(func() {
		_ = r.daemon.Process.Kill()
		<-r.ended
		if t.Failed() {
			t.Logf("egressd:\n%s\nevents:\n%s", r.log, r.file("events.jsonl"))
		}
	})
	r.log.waitFor(t, "msg=ready")
	return r
}

func (r *real) text(s string) string { return strings.ReplaceAll(s, "ORIGIN", fmt.Sprint(r.port)) }

// write puts a file into the daemon's directory, all at once.
func (r *real) write(name, text string) {
	r.t.Helper()
	path := filepath.Join(r.dir, name)
	if err := errors.Join(os.WriteFile(path+".new", []byte(r.text(text)), 0o644), os.Rename(path+".new", path)); err != nil {
		r.t.Fatal(err)
	}
}

func (r *real) file(name string) string {
	data, _ := os.ReadFile(filepath.Join(r.dir, name)) // "" says enough
	return string(data)
}

// webOrigin is a server on the loopback.
func webOrigin(t *testing.T) uint16 {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "outside") })}
	go s.Serve(ln) //nolint:errcheck // ErrServerClosed
	t.Cleanup(func() { s.Close() })
	return uint16(ln.Addr().(*net.TCPAddr).Port)
}

// freePort is one that nobody has, a moment ago.
func freePort(t *testing.T) uint16 {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return uint16(ln.Addr().(*net.TCPAddr).Port)
}

// run is one launch under way.
type run struct {
	r        *real
	cmd      *exec.Cmd
	dir      string // its working directory
	out, err *lines
}

// launch starts launch with flags in which ORIGIN stands for the origin's port,
// and the probe with words.
func (r *real) launch(flags []string, words ...string) *run {
	r.t.Helper()
	return r.launchAs(launcherUser, []uint32{daemonUser}, flags, words...)
}

func (r *real) launchAs(uid int, groups []uint32, flags []string, words ...string) *run {
	r.t.Helper()
	l := &run{r: r, dir: place(r.t, uid, 0o755), out: new(lines), err: new(lines)}
	args := append([]string{"--egressd", "unix:" + r.socket, "--workdir", l.dir}, flags...)
	args = append(args, "--", filepath.Join(r.bin, "probe"), probeMark)
	args = append(args, words...)
	for i := range args {
		args[i] = r.text(args[i])
	}
	l.cmd = exec.Command(filepath.Join(r.bin, "launch"), args...)
	l.cmd.Env = []string{"PATH=/usr/bin:/bin", "HOME=" + l.dir, "SESSION_SECRET=of-the-session"}
	l.cmd.Dir, l.cmd.Stdout, l.cmd.Stderr = l.dir, l.out, l.err
	as(l.cmd, uint32(uid), groups...)
	if err := l.cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		_ = l.cmd.Process.Kill() // it may have ended
		if r.t.Failed() {
			r.t.Logf("launch %q:\n%s\n%s", args, l.out, l.err)
		}
	})
	return l
}

// end waits for the end and reports the exit code.
func (l *run) end() int {
	l.r.t.Helper()
	timer := time.AfterFunc(2*patience, func() { _ = l.cmd.Process.Kill() })
	defer timer.Stop()
	_ = l.cmd.Wait() // the code says it
	return l.cmd.ProcessState.ExitCode()
}

// tell makes the file that the probe waits for.
func (l *run) tell(name string) {
	l.r.t.Helper()
	if err := os.WriteFile(filepath.Join(l.dir, name), nil, 0o644); err != nil {
		l.r.t.Fatal(err)
	}
}

// said reports what the probe printed about a word.
func (l *run) said(word string) string {
	l.r.t.Helper()
	word = l.r.text(word)
	for sc := bufio.NewScanner(strings.NewReader(l.out.String())); sc.Scan(); {
		if rest, ok := strings.CutPrefix(sc.Text(), word+" "); ok {
			return rest
		}
	}
	l.r.t.Errorf("the probe says nothing about %s: %s%s", word, l.out, l.err)
	return ""
}

// events reads an events file; every line must be whole and numbered.
func readEvents(t *testing.T, path string) (out []eventtest.Line) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(data) {
		var e eventtest.Line
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if e.Seq != uint64(len(out)+1) {
			t.Fatalf("line %d has number %d", len(out)+1, e.Seq)
		}
		out = append(out, e)
	}
	return out
}

// network keeps the decisions and ends of one session, as comparable lines.
func network(all []eventtest.Line, session string) (out []string) {
	for _, e := range all {
		if e.Session == session && (strings.HasPrefix(e.Type, "network.") || e.Type == "dns.query") {
			out = append(out, fmt.Sprintf("%s %s %s %s:%d %s", e.Type, e.Decision, e.Reason, e.Host, e.Port, e.Rule))
		}
	}
	slices.Sort(out)
	return out
}

// openDescriptors asks the daemon, whose /proc nobody may read.
func (r *real) openDescriptors() int {
	r.t.Helper()
	_, rest, _ := strings.Cut(r.log.String(), "msg=listening door=admin addr=")
	addr, _, _ := strings.Cut(rest, " ")
	resp, err := (&http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}).Get("http://" + addr + "/metrics")
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	for sc := bufio.NewScanner(resp.Body); sc.Scan(); {
		var n int
		if _, err := fmt.Sscanf(sc.Text(), "process_open_fds %d", &n); err == nil {
			return n
		}
	}
	r.t.Fatal("the metrics say nothing about descriptors")
	return 0
}

//go:build system

package docs

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

const commandTimeout = 4 * time.Minute

// shell is one reader's terminal in a world of its own.
type shell struct {
	dir    string // the world's
	cmd    *exec.Cmd
	in     io.WriteCloser
	status *bufio.Reader
	errs   *lockedBuffer
	n      int
	dead   bool
}

type lockedBuffer struct {
	mu  sync.Mutex
	buf strings.Builder
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// openShell makes a world from a copy of the checkout and starts a shell in it.
func openShell(t *testing.T, checkout, first string) *shell {
	t.Helper()
	if err := env.build(); err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp(env.base, "world-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) // the base directory goes at the end anyway
	for _, sub := range []string{"bin", "home", "tmp", "log", "containers"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() != 0 { // so that all of it is the reader's own
		own := filepath.Join(dir, "checkout")
		if out, err := exec.Command("cp", "-r", checkout, own).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		checkout = own
	}
	furnishBin(t, filepath.Join(dir, "bin"))
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &shell{dir: dir, status: bufio.NewReader(r), errs: &lockedBuffer{}}
	s.cmd = exec.CommandContext(ctx, env.self, dir, checkout, first)
	s.cmd.Args[0] = worldRole
	s.cmd.Env = goEnviron()
	s.cmd.Stdout, s.cmd.Stderr = s.errs, s.errs
	s.cmd.ExtraFiles = []*os.File{w}
	s.cmd.SysProcAttr = worldAttr()
	s.cmd.WaitDelay = 5 * time.Second
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	err = s.cmd.Start()
	_ = w.Close() // the child has it
	if err != nil {
		cancel()
		t.Fatalf("a world for the page: %v", err)
	}
	t.Cleanup(func() {
		_ = s.in.Close() // the shell ends, and everything with it
		timer := time.AfterFunc(10*time.Second, cancel)
		_ = s.cmd.Wait() // how it ends says nothing
		timer.Stop()
		cancel()
		_ = r.Close() // nobody writes any more
	})
	project := filepath.Join(dir, "project")
	if err := os.Mkdir(project, 0o755); err != nil {
		t.Fatal(err)
	}
	copyInto(t, "testdata/project", project)
	if err := s.check("cp " + project + "/* . && { git rev-parse || git init; } >/dev/null 2>&1 && set -o pipefail"); err != nil { // stricter than a reader's shell
		t.Fatal(err)
	}
	return s
}

// goEnviron is this process's environment with the go command's directories
// spelt out: the world has another HOME.
func goEnviron() []string {
	out := os.Environ()
	for _, name := range []string{"GOROOT", "GOCACHE", "GOMODCACHE"} {
		if v, err := exec.Command("go", "env", name).Output(); err == nil {
			out = append(out, name+"="+strings.TrimSpace(string(v)))
		}
	}
	return out
}

// furnishBin puts this binary's roles, and stand-ins for what readers have,
// into the world's PATH.
func furnishBin(t *testing.T, bin string) {
	t.Helper()
	for role := range roles() {
		if err := os.Symlink(env.self, filepath.Join(bin, role)); err != nil {
			t.Fatal(err)
		}
	}
	copyInto(t, "testdata/bin", bin)
}

// copyInto copies the files of one directory into another.
func copyInto(t *testing.T, from, to string) {
	t.Helper()
	entries, err := os.ReadDir(from)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(from, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(to, e.Name()), data, info.Mode().Perm()); err != nil {
			t.Fatal(err)
		}
	}
}

// run types one command and reports its exit code and what it printed.
func (s *shell) run(c command) (code int, out string, err error) {
	if s.dead {
		return 0, "", fmt.Errorf("the shell has ended: %s", s.errs.String())
	}
	s.n++
	log := filepath.Join(s.dir, "log")
	text, print := filepath.Join(log, fmt.Sprint(s.n, ".sh")), filepath.Join(log, fmt.Sprint(s.n, ".out"))
	if err := os.WriteFile(text, []byte(c.text), 0o644); err != nil {
		return 0, "", err
	}
	// 3 is the status pipe: commands do not get it, or the end of the shell
	// would not be seen while something it left behind lives.
	line := fmt.Sprintf("eval \"$(<%s)\" </dev/null >%s 2>&1 3>&-; echo $? >&3\n", text, print)
	if c.background {
		before := text + ".before"
		line = fmt.Sprintf("%s >%s 3>&-; eval \"$(<%s)\" </dev/null >%s 2>&1 3>&-; %s $! <%s >>%s 2>&1 3>&-; echo $? >&3\n",
			awaitRole, before, text, print, awaitRole, before, print)
	}
	if _, err := io.WriteString(s.in, line); err != nil {
		s.dead = true
		return 0, "", fmt.Errorf("%w: %s", err, s.errs.String())
	}
	code, err = s.answer()
	data, rerr := os.ReadFile(print)
	if err == nil {
		err = rerr
	}
	return code, string(data), err
}

// answer reads the exit code of the last command.
func (s *shell) answer() (int, error) {
	type result struct {
		line string
		err  error
	}
	got := make(chan result, 1)
	go func() {
		line, err := s.status.ReadString('\n')
		got <- result{line, err}
	}()
	select {
	case r := <-got:
		if r.err != nil {
			s.dead = true
			return 0, fmt.Errorf("the shell ended: %w: %s", r.err, s.errs.String())
		}
		return strconv.Atoi(strings.TrimSpace(r.line))
	case <-time.After(commandTimeout):
		s.dead = true
		return 0, fmt.Errorf("no end after %v", commandTimeout)
	}
}

//go:build system

package clients

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"
)

const sessionTimeout = 100 * time.Second

// proxyVariables are all that point a client to a proxy; a captured run has
// none of them.
var proxyVariables = []string{
	"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy",
	"NODE_USE_ENV_PROXY", "JAVA_TOOL_OPTIONS",
}

// person is somebody who runs launch.
type person struct {
	name     string
	uid, gid int
	login    string
}

// people lists who runs the clients: root and an ordinary user, where this
// process may be both.
func people(t *testing.T) []person {
	t.Helper()
	me, err := user.Current()
	if err != nil {
		t.Skipf("this user has no entry in the password file, which clients need: %v", err)
	}
	if os.Geteuid() != 0 {
		return []person{{name: "user", uid: os.Geteuid(), gid: os.Getegid(), login: me.Username}}
	}
	out := []person{{name: "root", login: "root"}}
	if n, err := user.Lookup("nobody"); err == nil {
		uid, _ := strconv.Atoi(n.Uid) // numbers on Linux
		gid, _ := strconv.Atoi(n.Gid)
		out = append(out, person{name: "user", uid: uid, gid: gid, login: "nobody"})
	}
	return out
}

// asEach runs f for each person.
func asEach(t *testing.T, f func(t *testing.T, who person)) {
	t.Helper()
	for _, p := range people(t) {
		t.Run(p.name, func(t *testing.T) { f(t, p) })
	}
}

// own gives path, and everything below it, to p.
func (p person) own(t *testing.T, path string) {
	t.Helper()
	if os.Geteuid() != 0 {
		return
	}
	err := filepath.WalkDir(path, func(name string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(name, p.uid, p.gid)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// home makes a directory that belongs to p and is not hidden inside.
func (p person) home(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp(env.base, "home-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = exec.Command("chmod", "-R", "u+w", dir).Run() // Go's module cache is read-only
		_ = os.RemoveAll(dir)                             // the base directory goes at the end anyway
	})
	p.own(t, dir)
	return dir
}

// command prepares argv to be run as p, outside the sandbox.
func (p person) command(ctx context.Context, home string, argv ...string) *exec.Cmd {
	attr := &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	switch {
	case os.Geteuid() != 0:
		argv = append([]string{"/proc/self/exe", "-bare", "--"}, argv...)
	case p.uid != 0:
		attr.Credential = &syscall.Credential{Uid: uint32(p.uid), Gid: uint32(p.gid)}
	}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = home
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "USER=" + p.login, "LOGNAME=" + p.login, "LANG=C.UTF-8"}
	cmd.SysProcAttr = attr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

// session is one run of launch.
type session struct {
	who      person
	home     string   // "": a new one
	flags    []string // more than --host for the whole world and --events
	argv     []string
	captured bool     // without proxy variables
	outer    []string // variables of the user's shell, NAME=VALUE
}

// ended is how a session went.
type ended struct {
	code           int
	stdout, stderr string
	doors          map[string]bool // of flows, as connect, http, socks5, transparent
	blocked        []string        // host:port reason, of flows and questions
	took           time.Duration
}

func (e ended) all() string { return e.stdout + "\n" + e.stderr }

// run executes s to its end.
func (s session) run(t *testing.T) ended {
	t.Helper()
	if s.home == "" {
		s.home = s.who.home(t)
	}
	record, err := os.MkdirTemp(env.base, "events-")
	if err != nil {
		t.Fatal(err)
	}
	s.who.own(t, record)
	events := filepath.Join(record, "events.jsonl")
	argv := slices.Concat([]string{env.launch}, hostFlags(), []string{"--events", events}, s.flags, []string{"--"})
	if s.captured {
		argv = append(argv, "env")
		for _, name := range proxyVariables {
			argv = append(argv, "-u", name)
		}
	}
	argv = append(argv, s.argv...)
	ctx, cancel := context.WithTimeout(t.Context(), sessionTimeout)
	defer cancel()
	cmd := s.who.command(ctx, s.home, argv...)
	cmd.Env = append(cmd.Env, s.outer...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	began := time.Now()
	err = cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%v: %v", argv, err)
	}
	e := ended{code: cmd.ProcessState.ExitCode(), stdout: stdout.String(), stderr: stderr.String(), took: time.Since(began)}
	e.readEvents(t, events)
	return e
}

// readEvents takes from the audit trail what the tests look at.
func (e *ended) readEvents(t *testing.T, file string) {
	t.Helper()
	e.doors = map[string]bool{}
	f, err := os.Open(file)
	if err != nil {
		t.Fatalf("no events: %v\nstderr: %s", err, e.stderr)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var ev struct {
			Type, Door, Decision, Reason, Host string
			Port                               int
		}
		if err := json.Unmarshal(lines.Bytes(), &ev); err != nil {
			t.Fatal(err)
		}
		if ev.Type == "network.connected" && ev.Door != "kernel" {
			e.doors[ev.Door] = true
		}
		if ev.Decision == "blocked" {
			e.blocked = append(e.blocked, ev.Host+":"+strconv.Itoa(ev.Port)+" "+ev.Reason)
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
}

// need skips the test unless the person can run all programs.
func need(t *testing.T, who person, programs ...string) {
	t.Helper()
	for _, p := range programs {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		err := who.command(ctx, "/", "/bin/sh", "-c", `command -v "$1" >/dev/null`, "sh", p).Run()
		cancel()
		if err != nil {
			t.Skipf("%s is not installed where %s can run it", p, who.login)
		}
	}
}

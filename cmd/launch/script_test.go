//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// exitCode runs a program and checks its exit code: rc CODE PROGRAM [ARG...].
// Its output is in the files out and err.
func exitCode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: rc CODE PROGRAM [ARG...]")
	}
	got := run1(ts, args[1:], nil)
	if strconv.Itoa(got) != args[0] {
		ts.Fatalf("exit code %d, want %s\n%s%s", got, args[0], ts.ReadFile("out"), ts.ReadFile("err"))
	}
}

// killed runs a program, sends it a signal once its output says "ready", and
// checks its exit code: killed SIGNAL CODE PROGRAM [ARG...].
func killed(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: killed SIGNAL CODE PROGRAM [ARG...]")
	}
	sig := map[string]syscall.Signal{"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP}[args[0]]
	got := run1(ts, args[2:], func(p *os.Process) error { return p.Signal(sig) })
	if strconv.Itoa(got) != args[1] {
		ts.Fatalf("exit code %d, want %s\n%s%s", got, args[1], ts.ReadFile("out"), ts.ReadFile("err"))
	}
}

// watched is an output that calls ready once it has seen the word.
type watched struct {
	buf   bytes.Buffer // not embedded: io.Copy would go past Write
	ready func()
}

func (w *watched) Write(p []byte) (int, error) {
	n, err := w.buf.Write(p)
	if w.ready != nil && bytes.Contains(w.buf.Bytes(), []byte("ready")) {
		w.ready()
		w.ready = nil
	}
	return n, err
}

// runLimit is much longer than any program of a script takes: one that never ends
// fails its script, and not the whole test binary ten minutes later.
const runLimit = 3 * time.Minute

func run1(ts *testscript.TestScript, argv []string, whenReady func(*os.Process) error) int {
	// The system's directories only: whoever runs the tests may have others in
	// PATH that another user can't search.
	launch := lookIn(ts.Getenv("PATH"), "launch")
	search := filepath.Dir(launch) + ":/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
	ctx, cancel := context.WithTimeout(context.Background(), runLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, lookIn(search, argv[0]), argv[1:]...)
	cmd.Args[0] = argv[0]
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = append(cmd.Env, "PATH="+search, "HOME="+ts.Getenv("HOME"), "WORK="+ts.Getenv("WORK"), "SECRET_TOKEN=hunter2",
		"ANTHROPIC_API_KEY=key", "LD_PRELOAD=", "NODE_EXTRA_CA_CERTS="+ts.Getenv("NODE_EXTRA_CA_CERTS"), "SSL_CERT_DIR="+ts.Getenv("SSL_CERT_DIR"), "HTTPS_PROXY="+ts.Getenv("HTTPS_PROXY"), "NO_PROXY="+ts.Getenv("NO_PROXY"), "SUDO_UID="+ts.Getenv("SUDO_UID"))
	var out watched
	var stderr bytes.Buffer
	if whenReady != nil {
		out.ready = func() { ts.Check(whenReady(cmd.Process)) }
	}
	cmd.Stdout, cmd.Stderr = &out, &stderr
	cmd.WaitDelay = 10 * time.Second
	err := cmd.Run()
	ts.Check(os.WriteFile(ts.MkAbs("out"), out.buf.Bytes(), 0o600))
	ts.Check(os.WriteFile(ts.MkAbs("err"), stderr.Bytes(), 0o600))
	if ctx.Err() != nil {
		ts.Fatalf("%q did not end within %v\n%s%s", argv, runLimit, out.buf.String(), stderr.String())
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		ts.Fatalf("%v", err)
	}
	return cmd.ProcessState.ExitCode()
}

func lookIn(path, name string) string {
	for _, dir := range strings.Split(path, ":") {
		if info, err := os.Stat(dir + "/" + name); err == nil && info.Mode()&0o111 != 0 {
			return dir + "/" + name
		}
	}
	return name
}

// mode checks a file's permissions: mode 0600 FILE.
func mode(ts *testscript.TestScript, neg bool, args []string) {
	info, err := os.Lstat(ts.MkAbs(args[1]))
	ts.Check(err)
	want, err := strconv.ParseUint(args[0], 8, 32)
	ts.Check(err)
	if (info.Mode().Perm() == os.FileMode(want)) == neg {
		ts.Fatalf("%s has mode %v", args[1], info.Mode())
	}
}

// lines checks how many lines of a file hold a text: lines N TEXT FILE.
func lines(ts *testscript.TestScript, neg bool, args []string) {
	n := 0
	for line := range strings.Lines(ts.ReadFile(args[2])) {
		if strings.Contains(line, args[1]) {
			n++
		}
	}
	if (strconv.Itoa(n) == args[0]) == neg {
		ts.Fatalf("%d lines of %s hold %q, want %s:\n%s", n, args[2], args[1], args[0], ts.ReadFile(args[2]))
	}
}

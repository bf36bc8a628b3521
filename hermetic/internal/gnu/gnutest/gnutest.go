// Package gnutest runs tools in tests: on a directory of their own, against
// what the real ones were seen to do.
package gnutest

import (
	"bytes"
	"encoding/json"
	"io"
	"io/fs"
	"strings"
	"syscall"
	"testing"
	"time"

	"egressd/hermetic/command"
	"egressd/hermetic/limits"
	"egressd/hermetic/vfs"
)

// Case is one recorded call. The standard input is the file Stdin, or empty.
type Case struct {
	Args   []string          `json:"args"`
	Stdin  string            `json:"stdin"`
	Stdout string            `json:"stdout"`
	Stderr string            `json:"stderr"`
	Status int               `json:"status"`
	Files  map[string]string `json:"files"` // that it changed
}

// Recorded runs every case of a recording; its files hold a byte a character.
func Recorded(t *testing.T, table command.Table, recording []byte) {
	t.Helper()
	var all struct {
		Files map[string]string
		Cases []Case
	}
	if err := json.Unmarshal(recording, &all); err != nil {
		t.Fatal(err)
	}
	if len(all.Cases) < 50 {
		t.Fatalf("only %d cases", len(all.Cases))
	}
	files := map[string]string{}
	for name, text := range all.Files {
		files[name] = latin(text)
	}
	for _, c := range all.Cases {
		t.Run(strings.Join(c.Args, " "), func(t *testing.T) {
			here := map[string]string{}
			for name, text := range files {
				if name == c.Stdin || strings.Contains(strings.Join(c.Args, " "), name) {
					here[name] = text
				}
			}
			r := Run(t, table, here, strings.NewReader(files[c.Stdin]), c.Args...)
			if r.Stdout != c.Stdout || r.Status != c.Status || c.Stderr != "" && r.Stderr != c.Stderr {
				t.Errorf("got %d\n%q\n%q\nwant %d\n%q\n%q", r.Status, r.Stdout, r.Stderr, c.Status, c.Stdout, c.Stderr)
			}
			for name, want := range c.Files {
				if got := r.File(t, name); got != want {
					t.Errorf("%s is %q, want %q", name, got, want)
				}
			}
		})
	}
}

// Result is what a call did.
type Result struct {
	Stdout, Stderr string
	Status         int
	FS             *vfs.FS
}

// File reads a file of the call's workspace.
func (r Result) File(t *testing.T, name string) string {
	t.Helper()
	f, err := r.FS.Open("/" + name)
	if err != nil {
		t.Error(err)
		return ""
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	if err != nil {
		t.Error(err)
	}
	return string(b)
}

// Run runs one call in a workspace with files and an empty directory "dir".
func Run(t *testing.T, table command.Table, files map[string]string, stdin io.Reader, args ...string) Result {
	t.Helper()
	ctx, budget, stop := limits.New(t.Context(), limits.Limits{})
	t.Cleanup(stop)
	fsys, err := vfs.Open(vfs.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = fsys.Close() })
	if err := fsys.Mkdir("/dir", 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		write(t, fsys, name, text)
	}
	var stdout, stderr bytes.Buffer
	c := &command.Call{
		Args: args, Stdin: stdin, Stdout: &stdout, Stderr: &stderr, Dir: "/", Env: []string{"HOME=/", "PATH=/bin"}, Umask: 0o022,
		Session: &command.Session{FS: fsys, Budget: budget, Now: func() time.Time { return time.Unix(1_700_000_000, 0) }},
	}
	run := table[args[0]]
	if run == nil {
		t.Fatalf("no command %s", args[0])
	}
	status := run(ctx, c)
	return Result{stdout.String(), stderr.String(), status, fsys}
}

func write(t testing.TB, fsys *vfs.FS, name, text string) {
	t.Helper()
	f, err := fsys.OpenFile("/"+name, syscall.O_WRONLY|syscall.O_CREAT|syscall.O_TRUNC, fs.FileMode(0o644))
	if err == nil {
		_, err = io.WriteString(f, text)
		_ = f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

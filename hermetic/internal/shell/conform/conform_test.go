package conform

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"egressd/hermetic"
	"egressd/hermetic/command"
	"egressd/hermetic/internal/shell"
	"egressd/hermetic/limits"
	"egressd/hermetic/vfs"
)

// recorded is a case: what bash 5.2 and GNU tools printed, and their status.
type recorded struct {
	Command  string            `json:"command"`
	Files    map[string]string `json:"files"`
	Stdout   string            `json:"stdout"`
	ExitCode int               `json:"exitCode"`
}

// safe is a buffer that two streams write to.
type safe struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safe) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func tables(t *testing.T) command.Table {
	t.Helper()
	all, err := hermetic.Commands(false, nil)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func runCase(t *testing.T, table command.Table, r recorded) (stdout, stderr string, status int) {
	t.Helper()
	dir := t.TempDir()
	for name, content := range r.Files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	ctx, budget, stop := limits.New(ctx, limits.Limits{})
	defer stop()
	fs, err := vfs.Open(vfs.Config{Dir: dir, Written: budget.Written})
	if err != nil {
		t.Fatal(err)
	}
	defer fs.Close()
	var out, errs safe
	status, err = shell.Run(ctx, shell.Config{
		Name: "bash", Dir: "/", Stdout: &out, Stderr: &errs, Commands: table, Env: []string{"PATH=/usr/bin:/bin", "HOME=/", "LC_ALL=C.UTF-8"},
		Session: &command.Session{FS: fs, Budget: budget, Now: time.Now},
	}, r.Command)
	if err != nil {
		t.Errorf("%q: %v", r.Command, err)
	}
	return out.b.String(), errs.b.String(), status
}

// TestFixtures runs the sample of just-bash's recorded cases.
func TestFixtures(t *testing.T) {
	table := tables(t)
	names, err := filepath.Glob("testdata/fixtures/*.json")
	if err != nil || len(names) == 0 {
		t.Fatal("no fixtures", err)
	}
	passed, total := 0, 0
	for _, name := range names {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var cases map[string]recorded
		if err := json.Unmarshal(content, &cases); err != nil {
			t.Fatal(err)
		}
		for id, r := range cases {
			total++
			stdout, stderr, status := runCase(t, table, r)
			if stdout == r.Stdout && status == r.ExitCode {
				passed++
				continue
			}
			t.Errorf("%s %s: %q\n got %d %q (%q)\nwant %d %q", filepath.Base(name), id, r.Command, status, stdout, stderr, r.ExitCode, r.Stdout)
		}
	}
	t.Logf("%d of %d", passed, total)
}

// TestBash runs cases of our own that were recorded from bash 5.2.
func TestBash(t *testing.T) {
	table := tables(t)
	content, err := os.ReadFile("testdata/bash.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []recorded
	if err := json.Unmarshal(content, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) < 50 {
		t.Fatalf("only %d cases", len(cases))
	}
	for _, r := range cases {
		stdout, stderr, status := runCase(t, table, r)
		if stdout != r.Stdout || status != r.ExitCode {
			t.Errorf("%s\n got %d %q (%q)\nwant %d %q", r.Command, status, stdout, stderr, r.ExitCode, r.Stdout)
		}
	}
}

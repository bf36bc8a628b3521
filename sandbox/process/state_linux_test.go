package process

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"egressd/sandbox"
)

// script makes a program of that name in dir, and reports its path.
func script(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// A directory that a command needs is made, and goes again if nothing is in it.
func TestMissingCaches(t *testing.T) {
	home, bin, work := tempDir(t, "/var/tmp"), tempDir(t, "/var/tmp"), tempDir(t, "/var/tmp")
	script(t, bin, "npm", "mkdir -p ~/.npm/x && echo made")
	spec := sandbox.Spec{Dir: work, Env: []string{"HOME=" + home, "PATH=" + bin + ":/bin"}}
	spec.Argv = []string{"/bin/sh", "-c", "ls -d ~/.npm"}
	if res := run(t, &Backend{}, spec); res.out != home+"/.npm\n" {
		t.Errorf("%q, exit %d, %v", res.out, res.ExitCode, res.err)
	}
	if left, err := os.ReadDir(home); err != nil || len(left) > 0 {
		t.Errorf("left in HOME: %v, %v", left, err)
	}
	spec.Argv = []string{"npm"}
	if res := run(t, &Backend{}, spec); res.out != "made\n" {
		t.Errorf("%q, exit %d, %v", res.out, res.ExitCode, res.err)
	}
	if _, err := os.Stat(filepath.Join(home, ".npm/x")); err != nil {
		t.Error(err)
	}
	// A link leads nowhere.
	other := tempDir(t, "/var/tmp")
	if err := os.Symlink(other, filepath.Join(home, "go")); err != nil {
		t.Fatal(err)
	}
	script(t, bin, "go", "true")
	run(t, &Backend{}, spec)
	if left, err := os.ReadDir(other); err != nil || len(left) > 0 {
		t.Errorf("made through a link: %v, %v", left, err)
	}
}

// A directory that one run has made stays while another run uses it.
func TestMissingCachesShared(t *testing.T) {
	home, bin, work := tempDir(t, "/var/tmp"), tempDir(t, "/var/tmp"), tempDir(t, "/var/tmp")
	script(t, bin, "npm", "true")
	spec := sandbox.Spec{Dir: work, Env: []string{"HOME=" + home, "PATH=" + bin + ":/bin"}, Argv: []string{"/bin/sh", "-c", "test -d ~/.npm"}}
	other := shareHome(home)
	if other == nil {
		t.Fatal("no lock on HOME")
	}
	if res := run(t, &Backend{}, spec); res.ExitCode != 0 {
		t.Errorf("exit %d, %v", res.ExitCode, res.err)
	}
	if _, err := os.Stat(filepath.Join(home, ".npm")); err != nil {
		t.Error("what another run may use is gone:", err)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
}

// Claude Code replaces its file in HOME, which it cannot there: it is given a copy,
// renewed when the one in HOME is newer. The one in HOME stays.
func TestAgentFile(t *testing.T) {
	home, bin, work := tempDir(t, "/var/tmp"), tempDir(t, "/var/tmp"), tempDir(t, "/var/tmp")
	script(t, bin, "claude", `cat "$CLAUDE_CONFIG_DIR/.claude.json"; echo inside >"$CLAUDE_CONFIG_DIR/new"; mv "$CLAUDE_CONFIG_DIR/new" "$CLAUDE_CONFIG_DIR/.claude.json"`)
	spec := sandbox.Spec{Dir: work, Env: []string{"HOME=" + home, "PATH=" + bin + ":/bin:/usr/bin"}, Argv: []string{"claude"}}
	file := filepath.Join(home, ".claude.json")
	write := func(text string, at time.Time) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(file, at, at); err != nil {
			t.Fatal(err)
		}
	}
	now := time.Now()
	write("first\n", now.Add(-time.Hour))
	for i, want := range []string{"first\n", "inside\n", "second\n"} {
		if i == 2 {
			write("second\n", now.Add(time.Hour))
		}
		if res := run(t, &Backend{}, spec); res.out != want {
			t.Errorf("run %d: %q, exit %d, %v; want %q", i, res.out, res.ExitCode, res.err, want)
		}
	}
	if data, err := os.ReadFile(file); string(data) != "second\n" {
		t.Errorf("the file in HOME is now %q, %v", data, err)
	}
	// What the program put there is replaced, not followed.
	outside := filepath.Join(tempDir(t, "/var/tmp"), "victim")
	if err := os.WriteFile(outside, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	kept := filepath.Join(home, ".claude/.claude.json")
	if err := os.Remove(kept); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, kept); err != nil {
		t.Fatal(err)
	}
	run(t, &Backend{}, spec)
	if data, err := os.ReadFile(outside); string(data) != "mine" {
		t.Errorf("a link was followed: %q, %v", data, err)
	}
}

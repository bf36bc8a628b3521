package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func sh(t *testing.T, stdin string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	in, err := os.Create(filepath.Join(t.TempDir(), "stdin"))
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if _, err := in.WriteString(stdin); err != nil {
		t.Fatal(err)
	}
	if _, err := in.Seek(0, 0); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	code = run(t.Context(), args, in, &out, &errs)
	return out.String(), errs.String(), code
}

func TestRun(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(t.TempDir(), "s.sh")
	for name, text := range map[string]string{filepath.Join(dir, "f"): "2\n1\n", script: "echo $0 $#; exit 3"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		name           string
		args           []string
		stdout, stderr string // stderr: a part
		code           int
	}{
		{"inline", []string{"-C", dir, "-c", "sort f; pwd"}, "1\n2\n/\n", "", 0},
		{"arguments", []string{"-c", `echo $0 "$@"`, "name", "a b", "c"}, "name a b c\n", "", 0},
		{"stdin", []string{"-c", "cat"}, "in\n", "", 0},
		{"file", []string{script, "x", "y"}, script + " 2\n", "", 3},
		{"outside", []string{"-C", dir, "-c", "cat " + script}, "", "No such file or directory", 1},
		{"not a command", []string{"-c", "mknod p p"}, "", "mknod: command not found", 127},
		{"no network", []string{"-c", "curl http://a.example/"}, "", "curl: command not found", 127},
		{"limit", []string{"--limit", "loops=10", "-c", "while :; do :; done"}, "", "hermetic-sh: limit: more than 10 loop turns", 126},
		{"overlay", []string{"-C", dir, "--overlay", "-c", "echo x >new; rm f"}, "", "A /new", 0},
		{"unknown limit", []string{"--limit", "x=1", "-c", ":"}, "", "there is no limit", 2},
		{"no such directory", []string{"-C", filepath.Join(dir, "none"), "-c", ":"}, "", "the workspace can't be opened", 125},
		{"nothing", nil, "", "-c SCRIPT", 2},
		{"no such file", []string{filepath.Join(dir, "none")}, "", "no such file", 2},
		{"empty", []string{"-c", ""}, "", "", 0},
		{"help", []string{"-h"}, "", "usage: hermetic-sh", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			stdout, stderr, code := sh(t, "in\n", tt.args...)
			if stdout != tt.stdout || code != tt.code || !strings.Contains(stderr, tt.stderr) || tt.stderr == "" && stderr != "" {
				t.Errorf("status %d, want %d; stdout %q, want %q; stderr %q, want %q", code, tt.code, stdout, tt.stdout, stderr, tt.stderr)
			}
		})
	}
	if _, err := os.Stat(filepath.Join(dir, "f")); err != nil {
		t.Errorf("an overlay did not keep a file: %v", err)
	}
}

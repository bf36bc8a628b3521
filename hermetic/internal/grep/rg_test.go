package grep

import (
	"bytes"
	"context"
	_ "embed"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"egressd/hermetic/command"
	"egressd/hermetic/internal/gnu/gnutest"
	"egressd/hermetic/limits"
	"egressd/hermetic/vfs"
)

// rgRecorded is what ripgrep 13.0 printed.
//
//go:embed testdata/rg.json
var rgRecorded []byte

func TestAsTheRealRipgrep(t *testing.T) { gnutest.Filter(t, inDirectory(), "rg", rgRecorded) }

// inDirectory gives rg no standard input, so that it searches the directory,
// unless it is named.
func inDirectory() command.Table {
	rg := Commands()["rg"]
	return command.Table{"rg": func(ctx context.Context, c *command.Call) int {
		if c.Args[len(c.Args)-1] != "-" {
			c.Stdin = nil
		}
		return rg(ctx, c)
	}}
}

// What git ignores is left out in a repository, and only there; what the
// operand is in says so, too.
func TestRgInRepository(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		".git/HEAD": "", ".gitignore": "*.log\n/out/\n", "a.txt": "foo\n", "b.log": "foo\n", "out/c": "foo\n", "in/out/d": "foo\n",
		"in/.gitignore": "!b.log\n", "in/b.log": "foo\n",
	} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	fsys, err := vfs.Open(vfs.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer fsys.Close()
	for args, want := range map[string]string{
		"-l foo":             "a.txt in/b.log in/out/d",
		"-l foo in":          "in/b.log in/out/d",
		"-l --no-ignore foo": "a.txt b.log in/b.log in/out/d out/c",
		"-l foo -g *.log":    "b.log in/b.log",
		"--files":            "a.txt in/b.log in/out/d",
	} {
		ctx, budget, stop := limits.New(t.Context(), limits.Limits{})
		defer stop()
		var out, errs bytes.Buffer
		status := Commands()["rg"](ctx, &command.Call{
			Args: append([]string{"rg"}, strings.Fields(args)...), Stdout: &out, Stderr: &errs, Dir: "/",
			Session: &command.Session{FS: fsys, Budget: budget},
		})
		if got := strings.Join(strings.Fields(out.String()), " "); got != want || status != 0 {
			t.Errorf("rg %s: %d %q, want %q (%s)", args, status, got, want, errs.String())
		}
	}
}

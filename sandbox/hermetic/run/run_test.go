package run

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"egressd/sandbox/hermetic/command"
	"egressd/sandbox/hermetic/limits"
	"egressd/sandbox/hermetic/vfs"
)

// recorded is what the real commands did (coreutils 9.1, findutils 4.9, util-linux 2.38)
// in a directory with Files, as user 1000 with umask 022.
type recorded struct {
	Files []struct {
		Name, Text, Link string
		Dir              bool
		Mode             uint32
		Time             int64
	}
	Cases []struct {
		Args            []string
		Stdin, Out, Err string
		Status          int
		Env             []string
	}
}

func load(t *testing.T, name string) (r recorded) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r recorded) make(t *testing.T, root string) {
	t.Helper()
	check := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range r.Files {
		p := filepath.Join(root, f.Name)
		switch {
		case f.Dir:
			check(os.Mkdir(p, 0o755))
		case f.Link != "":
			check(os.Symlink(f.Link, p))
		default:
			check(os.WriteFile(p, []byte(f.Text), 0o644))
			if f.Mode != 0 {
				check(os.Chmod(p, fs.FileMode(f.Mode)))
			}
			if f.Time == 0 {
				f.Time = 1700000000
			}
			check(os.Chtimes(p, time.Unix(f.Time, 0), time.Unix(f.Time, 0)))
		}
	}
}

// call runs one command over root.
func call(t *testing.T, root, stdin string, env []string, args ...string) (status int, out, errs string) {
	t.Helper()
	ctx, budget, stop := limits.New(context.Background(), limits.Limits{})
	defer stop()
	f, err := vfs.Open(vfs.Config{Dir: root, Written: budget.Written})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var o, e bytes.Buffer
	s := &command.Session{FS: f, Budget: budget, Now: func() time.Time { return time.Date(2026, 11, 21, 20, 0, 0, 0, time.UTC) }}
	all := Commands()
	all["echo"] = func(_ context.Context, c *command.Call) int {
		fmt.Fprintln(c.Stdout, strings.Join(c.Args[1:], " "))
		return 0
	}
	s.Find = func(_, name string) (string, bool) { return "/usr/bin/" + name, all[name] != nil }
	s.Exec = func(ctx context.Context, c *command.Call) int { return all[c.Args[0]](ctx, c) }
	status = s.Exec(ctx, &command.Call{Args: args, Stdin: strings.NewReader(stdin), Stdout: &o, Stderr: &e, Dir: "/", Env: env, Umask: 0o022, Session: s})
	return status, o.String(), e.String()
}

func TestAsTheRealOnes(t *testing.T) {
	r := load(t, "run.json")
	root := t.TempDir()
	r.make(t, root)
	for _, c := range r.Cases {
		t.Run(strings.Join(c.Args, " "), func(t *testing.T) {
			status, out, errs := call(t, root, c.Stdin, c.Env, c.Args...)
			if status != c.Status || out != c.Out || errs != c.Err {
				t.Errorf("status %d, want %d\n%q\nwant\n%q\nerrors\n%q\nwant\n%q", status, c.Status, out, c.Out, errs, c.Err)
			}
		})
	}
}

package gnutest

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"egressd/hermetic/command"
	"egressd/hermetic/limits"
	"egressd/hermetic/vfs"
)

// Runner calls commands one after the other in one workspace. Status 126 is a
// bound that was met, and stderr is its reason then.
type Runner func(stdin string, args ...string) (stdout, stderr string, status int)

// In makes a Runner over files, with bounds for each call.
func In(t testing.TB, table command.Table, files map[string]string, bounds limits.Limits) Runner {
	t.Helper()
	fsys, err := vfs.Open(vfs.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = fsys.Close() })
	for name, text := range files {
		for i, c := range name {
			if c == '/' {
				_ = fsys.Mkdir("/"+name[:i], 0o755) // a second file finds it there
			}
		}
		write(t, fsys, name, text)
	}
	return func(stdin string, args ...string) (string, string, int) {
		ctx, budget, stop := limits.New(context.Background(), bounds)
		defer stop()
		var out, errs bytes.Buffer
		s := &command.Session{FS: fsys, Budget: budget, Now: func() time.Time { return time.Unix(1e9, 0) }, Exec: fakeShell}
		status := table[args[0]](ctx, &command.Call{
			Args: args, Stdin: strings.NewReader(stdin), Stdout: &out, Stderr: &errs, Dir: "/", Umask: 0o022,
			Env: []string{"LC_ALL=C.UTF-8", "TZ=UTC", "FOO=bar"}, Session: s,
		})
		if err := budget.Cause(); err != nil {
			return out.String(), err.Error(), 126
		}
		return out.String(), errs.String(), status
	}
}

// fakeShell knows "cat" and "exit 3".
func fakeShell(_ context.Context, c *command.Call) int {
	switch line := c.Args[2]; line {
	case "cat":
		var b bytes.Buffer
		_, _ = b.ReadFrom(c.Stdin)
		_, _ = c.Stdout.Write(b.Bytes())
	case "exit 3":
		return 3
	default:
		_, _ = c.Stdout.Write([]byte("ran " + line + "\n"))
	}
	return 0
}

// Filter runs every case of a recording of one command, with the files and the
// standard input of the recording, which hold a byte a character.
func Filter(t *testing.T, table command.Table, name string, recording []byte) {
	t.Helper()
	var all struct {
		Files map[string]string
		Stdin string
		Cases []struct {
			Args   []string
			Stdout string
			Status int
		}
	}
	if err := json.Unmarshal(recording, &all); err != nil {
		t.Fatal(err)
	}
	if len(all.Cases) < 50 {
		t.Fatalf("only %d cases", len(all.Cases))
	}
	for name, text := range all.Files {
		all.Files[name] = latin(text)
	}
	run := In(t, table, all.Files, limits.Limits{})
	for _, c := range all.Cases {
		args := append([]string{name}, c.Args...)
		out, errs, status := run(latin(all.Stdin), args...)
		if out != latin(c.Stdout) || status != c.Status {
			t.Errorf("%q: status %d, want %d\n got %q\nwant %q\n%s", args, status, c.Status, out, latin(c.Stdout), errs)
		}
	}
}

// latin keeps bytes as characters: JSON has no bytes.
func latin(s string) string {
	b := make([]byte, 0, len(s))
	for _, r := range s {
		b = append(b, byte(r))
	}
	return string(b)
}

package grep

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"egressd/sandbox/hermetic/command"
	"egressd/sandbox/hermetic/limits"
	"egressd/sandbox/hermetic/vfs"
)

//go:embed testdata/cases.json
var recorded []byte

// latin keeps bytes as characters: JSON has no bytes.
func latin(s string) string {
	b := make([]byte, 0, len(s))
	for _, r := range s {
		b = append(b, byte(r))
	}
	return string(b)
}

// session makes a directory of files and says how to call a command in it.
func session(t testing.TB, files map[string]string, bounds limits.Limits) func(stdin string, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		at := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	fsys, err := vfs.Open(vfs.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { fsys.Close() })
	return func(stdin string, args ...string) (string, string, int) {
		ctx, budget, stop := limits.New(context.Background(), bounds)
		defer stop()
		var out, errs bytes.Buffer
		s := &command.Session{FS: fsys, Budget: budget, Now: func() time.Time { return time.Unix(1e9, 0) }, Exec: fakeShell}
		c := &command.Call{
			Args: args, Stdin: strings.NewReader(stdin), Stdout: &out, Stderr: &errs, Dir: "/", Umask: 0o022,
			Env: []string{"LC_ALL=C.UTF-8", "TZ=UTC", "FOO=bar"}, Session: s,
		}
		status := Commands()[args[0]](ctx, c)
		if err := budget.Cause(); err != nil {
			return out.String(), err.Error(), 126
		}
		return out.String(), errs.String(), status
	}
}

// fakeShell knows "cat", "sort" and "exit 3".
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

func TestRecorded(t *testing.T) {
	var all struct {
		Files map[string]string
		Stdin string
		Cases []struct {
			Args   []string
			Stdout string
			Status int
		}
	}
	if err := json.Unmarshal(recorded, &all); err != nil {
		t.Fatal(err)
	}
	for name, text := range all.Files {
		all.Files[name] = latin(text)
	}
	run := session(t, all.Files, limits.Limits{})
	for _, c := range all.Cases {
		args := append([]string{"grep"}, c.Args...)
		out, errs, status := run(latin(all.Stdin), args...)
		if out != latin(c.Stdout) || status != c.Status {
			t.Errorf("%q: status %d, want %d\n got %q\nwant %q\n%s", args, status, c.Status, out, latin(c.Stdout), errs)
		}
	}
}

func TestErrors(t *testing.T) {
	run := session(t, map[string]string{"a": "x\n", "d/b": "x\n"}, limits.Limits{Steps: 1e6})
	for _, c := range []struct {
		args   string
		status int
		stderr string
	}{
		{"grep x nonex", 2, "grep: nonex: No such file or directory\n"},
		{"grep -s x nonex", 2, ""},
		{"grep -q x a nonex", 0, ""},
		{"grep x d", 2, "grep: d: Is a directory\n"},
		{"grep [ a", 2, "grep: Unmatched [, [^, [:, [., or [=\n"},
		{"grep -E -F x a", 2, "grep: conflicting matchers specified\n"},
		{"grep -A y x a", 2, "grep: y: invalid context length argument\n"},
		{"grep --nope x", 2, "grep: unrecognized option '--nope'\nUsage: grep [OPTION]... PATTERNS [FILE]...\nTry 'grep --help' for more information.\n"},
		{"grep -m 0 x a", 1, ""},
		{"egrep x|y a", 0, ""},
		{"fgrep . a", 1, ""},
	} {
		_, errs, status := run("", strings.Fields(c.args)...)
		if status != c.status || errs != c.stderr {
			t.Errorf("%s: %d %q, want %d %q", c.args, status, errs, c.status, c.stderr)
		}
	}
}

func TestStepsEndTheRun(t *testing.T) {
	run := session(t, nil, limits.Limits{Steps: 1e6})
	_, errs, status := run(strings.Repeat("a", 3000)+"xb\n", "grep", `^\(a*\)*\1\(a*\)*\2b`)
	if status != 126 || !strings.Contains(errs, "steps") {
		t.Errorf("status %d %q, want the limit of steps", status, errs)
	}
}

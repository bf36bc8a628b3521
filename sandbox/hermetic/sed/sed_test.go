package sed

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
		args := append([]string{"sed"}, c.Args...)
		out, errs, status := run(latin(all.Stdin), args...)
		if out != latin(c.Stdout) || status != c.Status {
			t.Errorf("%q: status %d, want %d\n got %q\nwant %q\n%s", args, status, c.Status, out, latin(c.Stdout), errs)
		}
	}
}

func TestInPlace(t *testing.T) {
	files := map[string]string{"a": "one\ntwo\n", "b": "one\n", "sub/c": "one"}
	run := session(t, files, limits.Limits{})
	read := func(name string) string {
		out, _, _ := run("", "sed", "", name)
		return out
	}
	if _, errs, status := run("", "sed", "-i.bak", "1s/one/ONE/", "a", "b", "sub/c"); status != 0 || errs != "" {
		t.Fatalf("status %d: %s", status, errs)
	}
	for name, want := range map[string]string{"a": "ONE\ntwo\n", "b": "ONE\n", "sub/c": "ONE", "a.bak": "one\ntwo\n", "sub/c.bak": "one"} {
		if got := read(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if _, _, status := run("", "sed", "-i", "1q", "a"); status != 0 || read("a") != "ONE\ntwo\n" {
		t.Errorf("after q the rest of the file is lost: %q", read("a"))
	}
	if _, errs, status := run("", "sed", "-i", "p", "sub"); status != 4 || errs != "sed: couldn't edit sub: not a regular file\n" {
		t.Errorf("a directory: %d %q", status, errs)
	}
}

func TestBounds(t *testing.T) {
	run := session(t, nil, limits.Limits{Steps: 1e7, Memory: 8 << 20})
	for script, want := range map[string]int{":a;ba": 126, ":a;s/x/xx/g;ba": 126, ":a;G;h;ba": statusPanic} {
		if _, errs, status := run("x\n", "sed", script); status != want {
			t.Errorf("%s: status %d %q, want %d", script, status, errs, want)
		}
	}
}

func TestShell(t *testing.T) {
	run := session(t, nil, limits.Limits{})
	if out, _, _ := run("a\n", "sed", "1e date"); out != "ran date\na\n" {
		t.Errorf("e: %q", out)
	}
	if out, _, _ := run("a\n", "sed", "s/a/date/e"); out != "ran date\n" {
		t.Errorf("s///e: %q", out)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"s/a/b/", "/x/,$!{p;b}", "a\\\nfoo", "y/abc/\\n\\t\\\\/", "1~2,+3d", "s,[,],x,g"} {
		f.Add(s)
	}
	run := session(f, nil, limits.Limits{Steps: 1e5})
	f.Fuzz(func(_ *testing.T, script string) { run("a\nb\n", "sed", "--sandbox", script) })
}

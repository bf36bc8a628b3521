package stage

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"egressd/policy/files"
)

func TestScan(t *testing.T) {
	dir := t.TempDir()
	paths{
		"a": "644 a", ".env.example": "600 x", "bin/run": "755 #!", "empty": "644 ", "link": "-> a", "out": "-> /etc/passwd", "none": "dir",
		".gitignore": "644 *.log\n/dist/\n!keep.log\n", "x.log": "644 x", "keep.log": "644 k", "dist/a": "644 a", "logs/y.log": "644 y",
		".git/config": "644 [core]", "sub/.git": "644 gitdir: x", "node_modules/m/i.js": "644 m", "sub/NODE_MODULES/m": "644 m", ".warrant/x": "644 w",
		"sub/.gitignore": "644 secret\n", "sub/secret": "600 s", "secret": "600 s",
		".github/workflows/ci.yml": "644 ci", "github/workflows/ci.yml": "644 other", ".vscode/settings.json": "644 {}", ".a/.b/.c": "644 c", "..odd/x": "644 x",
	}.make(t, dir)
	must(t, syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600))
	_, there := send(t, Config{Dir: dir})
	want := paths{
		"a": "644 a", ".env.example": "600 x", "bin/run": "755 #!", "empty": "644 ", "link": "-> a", "out": "-> /etc/passwd", "none": "dir",
		".gitignore": "644 *.log\n/dist/\n!keep.log\n", "keep.log": "644 k", "logs": "dir", "sub/.gitignore": "644 secret\n", "secret": "600 s",
		".github/workflows/ci.yml": "644 ci", "github/workflows/ci.yml": "644 other", ".vscode/settings.json": "644 {}", ".a/.b/.c": "644 c", "..odd/x": "644 x",
	}
	if got := look(t, there); !maps.Equal(got, want) {
		t.Errorf("sent %v\nwant %v", got, want)
	}
	tree, there := send(t, Config{Dir: dir, All: true, Skip: []string{".git"}})
	if got := look(t, there); got["x.log"] == "" || got["dist/a"] == "" || got["node_modules/m/i.js"] == "" || got[".git/config"] != "" {
		t.Errorf("with All: %v", got)
	}
	if n, bytes := tree.Size(); n != len(tree.Entries()) || bytes == 0 {
		t.Errorf("size: %d files, %d bytes", n, bytes)
	}
}

// byRules are the built-in rules about files, and those of section.
func byRules(t *testing.T, dir string, section files.Section) func(string) files.Decision {
	t.Helper()
	gate, err := section.In(files.Place{Workspace: dir, Elsewhere: true})
	must(t, err)
	return func(name string) files.Decision { return gate.Decide(filepath.Join(dir, name)) }
}

// What the rules about files hide is not sent, stays as it is, and is listed;
// what they make read-only is sent and does not change here.
func TestHeld(t *testing.T) {
	dir := t.TempDir()
	start := paths{
		".env": "600 TOKEN", "sub/.ENV": "600 TOKEN", "keys/.ssh/id_rsa": "600 key", "keys/.ssh/config": "600 x", "keys/open.pem": "644 cert", "a": "644 a",
		".vscode/settings.json": "644 {}", ".gitignore": "644 ignored.pem\n", "ignored.pem": "600 key", "fixed": "644 f",
	}
	start.make(t, dir)
	rules := files.Section{Read: []files.Rule{{Path: "keys/open.pem", At: "--read #1"}, {Path: "fixed", At: "--read #2"}}}
	tree, there := send(t, Config{Dir: dir, Decide: byRules(t, dir, rules)})
	want := paths{"keys/open.pem": "644 cert", "a": "644 a", ".vscode/settings.json": "644 {}", ".gitignore": "644 ignored.pem\n", "fixed": "644 f", "sub": "dir"}
	if got := look(t, there); !maps.Equal(got, want) {
		t.Errorf("sent %v\nwant %v", got, want)
	}
	held, secret, unreadable := tree.Held()
	if got := fmt.Sprint(held); secret != 3 || unreadable != 0 || got != "[{.env true <nil>} {keys/.ssh/ true <nil>} {sub/.ENV true <nil>}]" {
		t.Errorf("held %s, %d and %d", got, secret, unreadable)
	}
	// Nothing changed there, nothing changes here.
	report, err := tree.Mirror(context.Background(), pack(t, there), "")
	must(t, err)
	if got := look(t, dir); !maps.Equal(got, start) || len(report.Conflicts)+len(report.Deleted) != 0 {
		t.Errorf("%v\n%+v", got, report)
	}
	paths{
		".env": "644 theirs", "new/.env": "644 theirs", "keys/.ssh/new": "644 theirs", ".vscode/tasks.json": "644 evil", ".vscode/settings.json": "644 evil", ".VSCode/x": "644 evil",
		".mcp.json": "644 evil", "sub/.claude/hooks/x": "755 evil", "fixed": "644 evil", "a": "644 theirs", ".envrc": "-> a", ".idea": "dir",
	}.make(t, there)
	must(t, os.Remove(filepath.Join(there, "keys/open.pem")))
	aside := filepath.Join(t.TempDir(), "aside")
	report, err = tree.Mirror(context.Background(), pack(t, there), aside)
	must(t, err)
	start["a"] = "644 theirs"
	if got := look(t, dir); !maps.Equal(got, start) {
		t.Errorf("here %v\nwant %v", got, start)
	}
	if got := look(t, aside); len(report.Conflicts) != 12 || len(got) != 9 || got[".mcp.json"] != "600 evil" {
		t.Errorf("%+v\naside %v", report.Conflicts, got)
	}
}

// What cannot be read does not end a run: it is listed, and stays as it is.
func TestUnreadable(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root reads everything")
	}
	dir := t.TempDir()
	paths{"a": "644 a", "data/db": "600 db", "none": "0 x", "half/x": "644 x"}.make(t, dir)
	must(t, os.Chmod(filepath.Join(dir, "data"), 0o300))
	must(t, os.Chmod(filepath.Join(dir, "half"), 0o444))
	t.Cleanup(func() {
		_ = os.Chmod(filepath.Join(dir, "data"), 0o700)
		_ = os.Chmod(filepath.Join(dir, "half"), 0o700)
	})
	tree, there := send(t, Config{Dir: dir})
	if got := look(t, there); !maps.Equal(got, paths{"a": "644 a", "half": "dir"}) && !maps.Equal(got, paths{"a": "644 a"}) {
		t.Errorf("sent %v", got)
	}
	held, secret, unreadable := tree.Held()
	var names []string
	for _, h := range held {
		names = append(names, h.Path)
	}
	if fmt.Sprint(names) != "[data/ half/ none]" || secret != 0 || unreadable != 3 || held[0].Err == nil {
		t.Errorf("held %v", held)
	}
	paths{"data/db": "644 theirs", "data/new": "644 theirs", "none": "644 theirs"}.make(t, there)
	report, err := tree.Mirror(context.Background(), pack(t, there), "")
	must(t, err)
	if len(report.Conflicts) != 3 || len(report.Deleted)+len(report.Added)+len(report.Changed) != 0 {
		t.Errorf("%+v", report)
	}
}

func TestScanBounds(t *testing.T) {
	dir := t.TempDir()
	paths{"a": "644 12345", "b": "644 12345", "c": "644 1"}.make(t, dir)
	for _, c := range []Config{{Dir: dir, MaxFiles: 2}, {Dir: dir, MaxBytes: 9}} {
		if _, err := Scan(context.Background(), c); err == nil || !strings.Contains(err.Error(), "more than") {
			t.Errorf("%+v: %v", c, err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Scan(ctx, Config{Dir: dir}); err == nil {
		t.Error("scanned though nobody waits")
	}
}

// What was not read to its end was not sent.
func TestHalfSent(t *testing.T) {
	dir := t.TempDir()
	paths{"a": "644 12345", "b": "644 12345"}.make(t, dir)
	tree, err := Scan(context.Background(), Config{Dir: dir})
	must(t, err)
	defer tree.Close()
	r, err := tree.Open("a")
	must(t, err)
	_, err = r.Read(make([]byte, 2))
	must(t, err)
	must(t, r.Close())
	report, err := tree.Mirror(context.Background(), pack(t, t.TempDir()), "")
	must(t, err)
	if len(report.Deleted) != 0 || len(report.Conflicts) != 2 {
		t.Errorf("%+v", report)
	}
	must(t, os.Truncate(filepath.Join(dir, "b"), 1))
	if _, err := tree.Open("b"); err == nil {
		t.Error("a file that became shorter is sent")
	}
}

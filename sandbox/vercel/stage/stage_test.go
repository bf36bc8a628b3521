package stage

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestScan(t *testing.T) {
	dir := t.TempDir()
	files{
		"a": "644 a", ".env.example": "600 x", "bin/run": "755 #!", "empty": "644 ", "link": "-> a", "out": "-> /etc/passwd", "none": "dir",
		".gitignore": "644 *.log\n/dist/\n!keep.log\n", "x.log": "644 x", "keep.log": "644 k", "dist/a": "644 a", "logs/y.log": "644 y",
		".git/config": "644 [core]", "sub/.git": "644 gitdir: x", "node_modules/m/i.js": "644 m", "sub/NODE_MODULES/m": "644 m", ".warrant/x": "644 w",
		"sub/.gitignore": "644 secret\n", "sub/secret": "600 s", "secret": "600 s",
		".github/workflows/ci.yml": "644 ci", "github/workflows/ci.yml": "644 other", ".vscode/settings.json": "644 {}", ".a/.b/.c": "644 c", "..odd/x": "644 x",
	}.make(t, dir)
	must(t, syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600))
	_, there := send(t, Config{Dir: dir})
	want := files{
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

func TestScanBounds(t *testing.T) {
	dir := t.TempDir()
	files{"a": "644 12345", "b": "644 12345", "c": "644 1"}.make(t, dir)
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
	files{"a": "644 12345", "b": "644 12345"}.make(t, dir)
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

package vfs

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// What is protected stays as it is, whatever is done to it, through a link or to
// the directories that hold it.
func TestProtect(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "a/b"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a/b/kept", "a/b/free"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	f, err := Open(Config{Dir: dir, Protect: []string{"/a/b/kept"}})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Symlink("a/b/kept", "/link"); err != nil {
		t.Fatal(err)
	}
	write := func(name string, flag int) error {
		file, err := f.OpenFile(name, syscall.O_WRONLY|flag, 0o644)
		if err == nil {
			file.Close()
		}
		return err
	}
	for what, err := range map[string]error{
		"written":              write("/a/b/kept", 0),
		"appended":             write("/a/b/kept", syscall.O_APPEND),
		"emptied":              write("/a/b/kept", syscall.O_TRUNC),
		"written by a link":    write("/link", 0),
		"cut":                  f.Truncate("/a/b/kept", 0),
		"removed":              f.Remove("/a/b/kept"),
		"moved":                f.Rename("/a/b/kept", "/a/b/x"),
		"replaced":             f.Rename("/a/b/free", "/a/b/kept"),
		"linked":               f.Link("/a/b/kept", "/second"),
		"chmodded":             f.Chmod("/a/b/kept", 0o777),
		"moved with b":         f.Rename("/a/b", "/c"),
		"moved with a":         f.Rename("/a", "/c"),
		"moved with a, slowly": f.Rename("/a/", "/c/"),
	} {
		if !errors.Is(err, syscall.EROFS) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for what, err := range map[string]error{
		"writing beside it":   write("/a/b/free", 0),
		"making beside it":    write("/a/b/new", syscall.O_CREAT),
		"its directory":       f.Access("/a/b", 2),
		"reading it":          f.Access("/a/b/kept", 4),
		"moving beside it":    f.Rename("/a/b/free", "/free"),
		"taking the link off": f.Remove("/link"),
	} {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}

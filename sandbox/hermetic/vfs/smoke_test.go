package vfs

import (
	"io"
	"os"
	"testing"
)

func put1(t *testing.T, f *FS, name, s string, flag int) {
	t.Helper()
	h, err := f.OpenFile(name, os.O_WRONLY|os.O_CREATE|flag, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(h, s); err != nil {
		t.Fatal(err)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
}

func get1(t *testing.T, f *FS, name string) string {
	t.Helper()
	h, err := f.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	b, err := io.ReadAll(h)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestSmoke(t *testing.T) {
	for _, over := range []bool{false, true} {
		dir := t.TempDir()
		os.WriteFile(dir+"/f", []byte("hello\n"), 0o644)
		os.MkdirAll(dir+"/d/e", 0o755)
		os.MkdirAll(dir+"/.git", 0o755)
		os.WriteFile(dir+"/d/e/g", []byte("world\n"), 0o644)
		f, err := Open(Config{Dir: dir, Overlay: over})
		if err != nil {
			t.Fatal(err)
		}
		put1(t, f, "/f", "more\n", os.O_APPEND)
		put1(t, f, "/d/e/new", "new\n", 0)
		put1(t, f, "/tmp/x", "tmp\n", 0)
		put1(t, f, "/dev/null", "tmp\n", 0)
		t.Log(f.Symlink("/d/../d/e", "/l"), get1(t, f, "/l/../e/new"))
		t.Log(f.Rename("/d/e", "/e2"), get1(t, f, "/e2/g"))
		t.Log(f.Mkdir("/.git/x", 0o755), f.Rename("/.git", "/x"), f.Symlink("x", "/a/.git"), f.Symlink("x", "/.GIT"))
		t.Log(f.Remove("/d"), f.Remove("/tmp"), f.Remove("/f/"))
		if s := get1(t, f, "/f"); s != "hello\nmore\n" {
			t.Error(s)
		}
		l, err := f.ReadDir("/")
		t.Log(l, err)
		l, err = f.ReadDir("/tmp")
		t.Log(l, err)
		c, err := f.Changes()
		for _, x := range c {
			t.Logf("%c %s", x.Kind, x.Path)
		}
		t.Log(err, f.Close())
	}
}

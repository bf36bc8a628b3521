package vfs

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// What a link called .git leads to is read-only by that name, and what is
// protected is with all that is in it.
func TestGitIsALink(t *testing.T) {
	dir := workspace(t, "meta/config", "meta/hooks/", "other/config", "r/f")
	for name, target := range map[string]string{"r/.git": "../meta", ".git": "other", "by": "r/.git/hooks"} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	f := open(t, Config{Dir: dir, Protect: []string{"/other"}})
	for what, err := range map[string]error{
		"written":            write(f, "/r/.git/config", "evil", 0),
		"made":               write(f, "/r/.git/hooks/x", "evil", 0),
		"made by a link":     write(f, "/by/x", "evil", 0),
		"removed":            f.Remove("/r/.git/config"),
		"moved":              f.Rename("/r/.git/config", "/x"),
		"linked":             f.Link("/r/.git/config", "/x"),
		"protected":          write(f, "/other/config", "evil", 0),
		"made in protected":  write(f, "/other/new", "evil", 0),
		"directory in it":    f.Mkdir("/other/hooks", 0o755),
		"protected moved":    f.Rename("/other", "/x"),
		"protected replaced": f.Rename("/r", "/other"),
	} {
		if !errors.Is(err, syscall.EROFS) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, name := range []string{"/r/f", "/meta/config", "/others"} {
		if err := write(f, name, "x", 0); err != nil {
			t.Error(err)
		}
	}
}

// Nothing that is called .git is changed, made, moved or linked, however it is
// reached.
func TestGitIsReadOnly(t *testing.T) {
	for _, overlay := range []bool{false, true} {
		dir := workspace(t, ".git/config", ".git/hooks/", "sub/.git/config", "wt/.git", "f", "d/", "g -> .git", "c -> .git/config", "sub/up -> ../.git/hooks")
		f := open(t, Config{Dir: dir, Overlay: overlay})
		now := time.Now()
		refused := map[string]error{}
		for _, name := range []string{
			"/.git/config", "/g/config", "/c", "/sub/.git/config", "/wt/.git", "/d/../.git/config", "/sub/up/../config", "/.git/../.git/config", "/g/../.git/config",
		} {
			refused["write "+name] = write(f, name, "evil", 0)
			refused["append "+name] = write(f, name, "evil", os.O_APPEND)
			refused["truncate "+name] = f.Truncate(name, 0)
			refused["chmod "+name] = f.Chmod(name, 0o777)
			refused["chtimes "+name] = f.Chtimes(name, now, now, true)
		}
		for _, name := range []string{
			"/.git/hooks/pre-commit", "/g/new", "/sub/up/post-commit", "/d/.git", "/d/.GIT", "/d/.gIt", "/d/.g\u200cit", "/d/\ufeff.git", "/.git/hooks/a/..//x",
		} {
			if name == "/.git/hooks/a/..//x" {
				continue // there is no a
			}
			refused["create "+name] = write(f, name, "evil", 0)
			refused["exclusive "+name] = write(f, name, "evil", os.O_EXCL)
			refused["mkdir "+name] = f.Mkdir(name, 0o755)
			refused["symlink "+name] = f.Symlink("/f", name)
			refused["link to "+name] = f.Link("/f", name)
			refused["rename to "+name] = f.Rename("/f", name)
			refused["rename dir to "+name] = f.Rename("/d", name)
		}
		refused["link from"] = f.Link("/.git/config", "/x")
		refused["link from c"] = f.Link("/g/config", "/x")
		refused["rename .git"] = f.Rename("/.git", "/x")
		refused["rename in"] = f.Rename("/.git/config", "/.git/y")
		refused["rename out"] = f.Rename("/.git/config", "/x")
		refused["remove"] = f.Remove("/.git/config")
		refused["rmdir"] = f.Remove("/.git/hooks")
		refused["remove file"] = f.Remove("/wt/.git")
		delete(refused, "rename dir to /d/.git") // into itself
		for what, err := range refused {
			if !errors.Is(err, syscall.EROFS) && !errors.Is(err, syscall.EINVAL) {
				t.Errorf("overlay %v: %s: %v", overlay, what, err)
			}
		}
		for _, n := range []string{".git/config", "sub/.git/config", "wt/.git"} {
			if b, err := os.ReadFile(filepath.Join(dir, n)); string(b) != n {
				t.Errorf("%s: %q %v", n, b, err)
			}
			if s, err := read(f, "/"+n); s != n {
				t.Errorf("%s: %q %v", n, s, err)
			}
		}
		if err := f.Access("/.git/config", 2); !errors.Is(err, syscall.EROFS) {
			t.Error(err)
		}
		// A directory with a repository in it may move, and /tmp is free.
		for what, err := range map[string]error{
			"move": f.Rename("/sub", "/sub2"), "tmp": f.Mkdir("/tmp/.git", 0o755), "tmp file": write(f, "/tmp/.git/config", "x", 0),
			"other": write(f, "/.gitignore", "x", 0), "open": write(f, "/.github", "x", 0),
		} {
			if err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
		if err := f.Rename("/tmp/.git", "/d2"); !errors.Is(err, syscall.EXDEV) {
			t.Error(err)
		}
	}
}

// A second name of a file outside, or of one in .git, gets a copy at the first
// change.
func TestHardLinksPart(t *testing.T) {
	now := time.Unix(1_000_000_000, 0)
	for what, change := range map[string]func(f *FS, name string) error{
		"write":    func(f *FS, name string) error { return write(f, name, "evil", 0) },
		"append":   func(f *FS, name string) error { return write(f, name, "evil", os.O_APPEND) },
		"trunc":    func(f *FS, name string) error { return write(f, name, "", os.O_TRUNC) },
		"truncate": func(f *FS, name string) error { return f.Truncate(name, 1) },
		"chmod":    func(f *FS, name string) error { return f.Chmod(name, 0o777) },
		"chtimes":  func(f *FS, name string) error { return f.Chtimes(name, now, now, true) },
		"linked": func(f *FS, name string) error {
			return errors.Join(f.Link(name, "/again"), write(f, "/again", "evil", 0), write(f, name, "evil", 0))
		},
	} {
		t.Run(what, func(t *testing.T) {
			outside := workspace(t, "secret")
			dir := workspace(t, ".git/config")
			for name, from := range map[string]string{"out": outside + "/secret", "git": dir + "/.git/config"} {
				if err := os.Link(from, filepath.Join(dir, name)); err != nil {
					t.Fatal(err)
				}
				was, err := os.Stat(from)
				if err != nil {
					t.Fatal(err)
				}
				f := open(t, Config{Dir: dir})
				if err := change(f, "/"+name); err != nil {
					t.Fatal(err)
				}
				is, err := os.Stat(from)
				if err != nil || is.Size() != was.Size() || is.Mode() != was.Mode() || !is.ModTime().Equal(was.ModTime()) {
					t.Errorf("%s was changed: %v", from, is)
				}
				if b, _ := os.ReadFile(from); string(b) != filepath.Base(from) && string(b) != ".git/config" {
					t.Errorf("%s: %q", from, b)
				}
				_ = os.Remove(filepath.Join(dir, "again"))
				if all, err := filepath.Glob(dir + "/.part*"); len(all) > 0 || err != nil {
					t.Error(all, err)
				}
			}
		})
	}
}

// Links that the session makes are one file, as ever.
func TestOwnHardLinks(t *testing.T) {
	f := open(t, Config{Dir: workspace(t, "a")})
	if err := errors.Join(f.Link("/a", "/b"), f.Link("/b", "/c"), write(f, "/b", "x", os.O_APPEND), f.Remove("/a"), write(f, "/c", "y", os.O_APPEND)); err != nil {
		t.Fatal(err)
	}
	if s, err := read(f, "/b"); s != "axy" || err != nil {
		t.Error(s, err)
	}
}

// What was looked at and what is opened must be the same file, with as many
// names.
func TestOpenSame(t *testing.T) {
	dir := workspace(t, "a", "b")
	f := open(t, Config{Dir: dir})
	d, err := f.disk.root()
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	a, err := d.lstat("a")
	if err != nil {
		t.Fatal(err)
	}
	for _, flag := range []int{os.O_RDONLY, os.O_WRONLY, os.O_RDWR | os.O_TRUNC} {
		if h, err := d.(*diskDir).openSame("b", a, flag); h != nil || err != nil {
			t.Errorf("%#x: %v %v", flag, h, err)
		}
	}
	if err := os.Link(filepath.Join(dir, "a"), filepath.Join(t.TempDir(), "out")); err != nil {
		t.Fatal(err)
	}
	if h, err := d.(*diskDir).openSame("a", a, os.O_WRONLY|os.O_TRUNC); h != nil || err != nil {
		t.Error(h, err)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "b")); string(b) != "b" || err != nil {
		t.Error(b, err)
	}
}

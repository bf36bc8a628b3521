//go:build linux

package vfs

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// swap exchanges two names until stop is closed.
func swap(dir, a, b string, stop chan struct{}, wg *sync.WaitGroup) {
	wg.Go(func() {
		fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY, 0)
		if err != nil {
			return
		}
		defer unix.Close(fd)
		for {
			select {
			case <-stop:
				return
			default:
				_ = unix.Renameat2(fd, a, fd, b, unix.RENAME_EXCHANGE)
			}
		}
	})
}

// A component that is a directory now and a link then leads nowhere: nothing
// outside and nothing in .git is read, made, changed or taken away.
func TestSwappedComponents(t *testing.T) {
	for _, c := range []struct{ what, target string }{{"outside", ""}, {"git", ".git"}} {
		t.Run(c.what, func(t *testing.T) {
			outside := workspace(t, "x", "keep/x")
			dir := workspace(t, "d/x", "d/keep/x", "e/x", ".git/x", ".git/keep/x", "f")
			victim := outside
			if c.target != "" {
				victim = filepath.Join(dir, ".git")
				outside = c.target
			}
			if err := os.Symlink(outside, filepath.Join(dir, "link")); err != nil {
				t.Fatal(err)
			}
			mark(t, victim)
			before := seen(t, victim)
			f := open(t, Config{Dir: dir})
			stop, wg := make(chan struct{}), &sync.WaitGroup{}
			defer wg.Wait()
			defer close(stop)
			swap(dir, "d", "link", stop, wg)
			for i := range 200 {
				attack(t, f, i, c.target == "")
			}
			if after := seen(t, victim); before != after {
				t.Errorf("before\n%s\nafter\n%s", before, after)
			}
		})
	}
}

// mark makes what is in dir known by its content.
func mark(t *testing.T, dir string) {
	t.Helper()
	for _, n := range []string{"x", "keep/x"} {
		if err := os.WriteFile(filepath.Join(dir, n), []byte("victim"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func seen(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	for _, n := range []string{"", "x", "keep", "keep/x"} {
		i, err := os.Lstat(filepath.Join(dir, n))
		if err != nil {
			t.Fatal(err)
		}
		data, _ := os.ReadFile(filepath.Join(dir, n))
		all, _ := os.ReadDir(filepath.Join(dir, n))
		fmt.Fprintln(&b, n, i.Mode(), i.ModTime(), i.Size(), string(data), len(all), i.Sys().(*syscall.Stat_t).Nlink)
	}
	return b.String()
}

func attack(t *testing.T, f *FS, i int, secret bool) {
	now := time.Unix(1_000_000_000, 0)
	if s, err := read(f, "/d/x"); err == nil && s == "victim" && secret {
		t.Error("read the file outside")
	}
	_ = write(f, "/d/x", "evil", os.O_TRUNC)
	_ = write(f, "/d/new", "evil", 0)
	_ = f.Chmod("/d/x", 0o600)
	_ = f.Chmod("/d", 0o700)
	_ = f.Chtimes("/d/x", now, now, true)
	_ = f.Chtimes("/d/keep", now, now, true)
	_ = f.Mkdir("/d/made", 0o755)
	_ = f.Symlink("/f", "/d/sym")
	_ = f.Link("/f", "/d/hard")
	_ = f.Rename("/f", "/d/f")
	_ = f.Rename("/d/f", "/f")
	_ = f.Rename("/d/x", "/e/y")
	_ = f.Rename("/e/y", "/d/x")
	_ = f.Link("/d/x", fmt.Sprintf("/e/l%d", i))
	_ = f.Truncate("/d/keep/x", 1)
	for _, n := range []string{"/d/new", "/d/made", "/d/sym", "/d/hard", "/d/keep/x", fmt.Sprintf("/e/l%d", i)} {
		_ = f.Remove(n)
	}
	_ = write(f, "/d/keep/x", "mine", 0)
	_ = write(f, "/f", "mine", 0)
}

// The last component, too: a file now, and a link then.
func TestSwappedFiles(t *testing.T) {
	outside := workspace(t, "x", "keep/x")
	mark(t, outside)
	dir := workspace(t, "d/x", "f")
	if err := os.Symlink(outside+"/x", filepath.Join(dir, "d/link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../.git/config", filepath.Join(dir, "d/l2")); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, ".git"), 0o755); err != nil {
		t.Fatal(err)
	}
	git := filepath.Join(dir, ".git/config")
	if err := os.WriteFile(git, []byte("victim"), 0o644); err != nil {
		t.Fatal(err)
	}
	before := seen(t, outside)
	f := open(t, Config{Dir: dir})
	stop, wg := make(chan struct{}), &sync.WaitGroup{}
	defer wg.Wait()
	defer close(stop)
	swap(filepath.Join(dir, "d"), "x", "link", stop, wg)
	swap(filepath.Join(dir, "d"), "x", "l2", stop, wg)
	now := time.Unix(1_000_000_000, 0)
	for range 400 {
		if s, err := read(f, "/d/x"); err == nil && s == "victim" {
			// Through l2 that is allowed: .git may be read.
			continue
		}
		_ = write(f, "/d/x", "evil", os.O_TRUNC)
		_ = write(f, "/d/x", "evil", os.O_APPEND)
		_ = f.Chmod("/d/x", 0o600)
		_ = f.Chtimes("/d/x", now, now, true)
		_ = f.Truncate("/d/x", 3)
	}
	if after := seen(t, outside); before != after {
		t.Errorf("before\n%s\nafter\n%s", before, after)
	}
	i, err := os.Stat(git)
	if b, _ := os.ReadFile(git); err != nil || string(b) != "victim" || i.Mode() != 0o644 || i.ModTime().Year() < 2002 {
		t.Errorf("%q %v %v", b, i, err)
	}
}

// A file now, and a second name of a file outside then: the check of how many
// names it has is of the file that was opened.
func TestSwappedHardLinks(t *testing.T) {
	outside := workspace(t, "x", "keep/x")
	mark(t, outside)
	dir := workspace(t, "d/x", "f")
	stop, wg := make(chan struct{}), &sync.WaitGroup{}
	defer wg.Wait()
	defer close(stop)
	f := open(t, Config{Dir: dir})
	swap(filepath.Join(dir, "d"), "x", "h", stop, wg)
	for range 400 {
		_ = os.Link(outside+"/x", filepath.Join(dir, "d/h")) // when it was parted
		_ = write(f, "/d/x", "evil", os.O_TRUNC)
	}
	if b, err := os.ReadFile(outside + "/x"); string(b) != "victim" || err != nil {
		t.Errorf("%q %v", b, err)
	}
}

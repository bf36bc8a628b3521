package vfs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func names(t *testing.T, f *FS, dir string) string {
	t.Helper()
	l, err := f.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range l {
		all = append(all, e.Name())
	}
	return strings.Join(all, " ")
}

func TestDevices(t *testing.T) {
	for _, with := range []bool{false, true} {
		dir := workspace(t, "f", "link -> /dev/null", "in -> dev/stdin")
		if with {
			dir = workspace(t, "f", "dev/null", "dev/mine", "link -> /dev/null", "in -> dev/stdin")
		}
		f := open(t, Config{Dir: dir})
		for _, name := range []string{"/dev/null", "/link", "/../dev/./null", "/dev//null"} {
			if err := write(f, name, "x", os.O_TRUNC); err != nil {
				t.Error(name, err)
			}
			if s, err := read(f, name); s != "" || err != nil {
				t.Error(name, s, err)
			}
		}
		if err := write(f, "/dev/full", "x", 0); !errors.Is(err, syscall.ENOSPC) {
			t.Error(err)
		}
		for _, name := range []string{"/dev/zero", "/dev/urandom", "/dev/random"} {
			h, err := f.Open(name)
			if err != nil {
				t.Fatal(err)
			}
			p := bytes.Repeat([]byte{7}, 64)
			if n, err := io.ReadFull(h, p); n != 64 || err != nil || bytes.Equal(p, bytes.Repeat([]byte{7}, 64)) || (name == "/dev/zero") != bytes.Equal(p, make([]byte, 64)) {
				t.Error(name, n, err, p)
			}
			h.Close()
		}
		for _, name := range []string{"/dev/stdin", "/dev/stdout", "/dev/fd/7", "/dev/tty", "/in"} {
			if i, err := f.Stat(name); err != nil || i.Mode()&os.ModeCharDevice == 0 {
				t.Error(name, i, err)
			}
			if _, err := f.Open(name); !errors.Is(err, syscall.ENXIO) {
				t.Error(name, err)
			}
		}
		for _, op := range []error{f.Remove("/dev/null"), f.Rename("/f", "/dev/null"), f.Chmod("/dev/zero", 0), f.Symlink("x", "/dev/full")} {
			if op == nil {
				t.Error("a device was changed")
			}
		}
		if got, want := names(t, f, "/"), map[bool]string{false: "f in link", true: "dev f in link"}[with]; got != want {
			t.Errorf("/ has %s", got)
		}
		if s, err := read(f, "/dev/mine"); with != (s == "dev/mine" && err == nil) {
			t.Error(s, err)
		}
		if err := write(f, "/dev/new", "x", 0); with != (err == nil) {
			t.Error(err)
		}
	}
}

func TestDescriptors(t *testing.T) {
	f := open(t, Config{Dir: workspace(t, "f", "in -> /dev/stdin")})
	var asked []string
	view := f.WithDescriptors(func(n, flag int) (File, error) {
		asked = append(asked, fmt.Sprint(n, flag))
		if n == 9 {
			return nil, syscall.EBADF
		}
		return f.Open("/f")
	})
	for _, name := range []string{"/dev/stdin", "/dev/fd/5", "/in", "/dev/stderr"} {
		if s, err := read(view, name); s != "f" || err != nil {
			t.Error(name, s, err)
		}
	}
	if _, err := view.Open("/dev/fd/9"); !errors.Is(err, syscall.EBADF) || !strings.Contains(err.Error(), "/dev/fd/9") {
		t.Error(err)
	}
	if got := strings.Join(asked, ","); got != "0 0,5 0,0 0,2 0,9 0" {
		t.Error(got)
	}
	for _, name := range []string{"/dev/fd/x", "/dev/fd/-1", "/dev/fd/01", "/dev/fd/99999"} {
		if _, err := view.Open(name); !errors.Is(err, syscall.ENOENT) {
			t.Error(name, err)
		}
	}
}

// /tmp is there, is not listed, and what is in it never reaches the workspace;
// a tmp directory of the workspace shows through and stays as it is.
func TestTmp(t *testing.T) {
	for _, with := range []string{"", "tmp/mine", "tmp", "tmp -> /f"} {
		start := []string{"f"}
		if with != "" {
			start = append(start, with)
		}
		dir := workspace(t, start...)
		for _, overlay := range []bool{false, true} {
			f := open(t, Config{Dir: dir, Overlay: overlay})
			err := errors.Join(write(f, "/tmp/a", "x", 0), f.Mkdir("/tmp/d", 0o755), write(f, "/tmp/d/b", "y", 0), write(f, "/tmp/mine", "new", os.O_TRUNC))
			if err != nil {
				t.Fatal(err)
			}
			if s, err := read(f, "/tmp/mine"); s != "new" || err != nil {
				t.Error(s, err)
			}
			if got := names(t, f, "/tmp"); got != "a d mine" {
				t.Error(got)
			}
			if got, want := names(t, f, "/"), map[bool]string{true: "f", false: "f tmp"}[with == ""]; got != want {
				t.Errorf("%q: / has %s", with, got)
			}
			for _, err := range []error{f.Remove("/tmp"), f.Rename("/tmp", "/x"), f.Mkdir("/tmp", 0o755), f.Rename("/tmp/a", "/a"), f.Link("/f", "/tmp/f")} {
				if !errors.Is(err, syscall.EBUSY) && !errors.Is(err, syscall.EEXIST) && !errors.Is(err, syscall.EXDEV) {
					t.Error(err)
				}
			}
			if with == "tmp/mine" {
				if b, err := os.ReadFile(filepath.Join(dir, with)); string(b) != with || err != nil {
					t.Errorf("%q %v", b, err)
				}
			}
			if c, err := f.Changes(); len(c) != 0 || err != nil {
				t.Error(c, err)
			}
			if all, err := os.ReadDir(filepath.Join(dir, "tmp")); len(all) > 1 {
				t.Error(all, err)
			}
		}
	}
}

func TestBounds(t *testing.T) {
	dir := workspace(t, "f")
	full := errors.New("no more")
	left := int64(1000)
	f := open(t, Config{Dir: dir, Memory: 64 << 10, Files: 20, Written: func(n int64) error {
		if left -= n; left < 0 {
			return full
		}
		return nil
	}})
	check := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("%s: %v", what, err)
		}
	}
	h, err := f.OpenFile("/f", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	check("truncate up", h.Truncate(1<<40))
	left = 1000
	if _, err := h.Seek(1<<40, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	_, err = h.Write([]byte("x"))
	check("hole", err)
	left = 1000
	check("write", write(f, "/f", strings.Repeat("x", 1001), 0))
	left = 1 << 40
	check("memory", write(f, "/tmp/big", strings.Repeat("x", 70<<10), 0))
	if err := errors.Join(f.Remove("/tmp/big"), write(f, "/tmp/some", strings.Repeat("x", 30<<10), 0)); err != nil {
		t.Error("what was removed is not free again:", err)
	}
	made := 0
	for err = nil; err == nil && made < 1000; made++ {
		err = f.Mkdir(fmt.Sprint("/tmp/", made), 0o755)
	}
	check("files", err)
	for i := range made - 1 {
		if err := f.Remove(fmt.Sprint("/tmp/", i)); err != nil {
			t.Error(err)
		}
	}
	if err := f.Mkdir("/tmp/again", 0o755); err != nil {
		t.Error(err)
	}
	for made, err = 0, nil; err == nil && made < 1000; made++ {
		err = errors.Join(f.Mkdir("/one", 0o755), f.Remove("/one"))
	}
	if check("files on disk", err); made < 190 {
		t.Error(made)
	}
}

// In an overlay a loop of making and removing what is below costs nothing in
// the end.
func TestOverlayChurn(t *testing.T) {
	f := open(t, Config{Dir: workspace(t, "d/f"), Overlay: true, Memory: 64 << 10, Files: 20})
	for i := range 2000 {
		if err := errors.Join(f.Remove("/d/f"), write(f, "/d/f", "x", 0), write(f, "/d/g", "x", 0), f.Remove("/d/g"), f.Rename("/d/f", "/d/h"), f.Rename("/d/h", "/d/f")); err != nil {
			t.Fatal(i, err)
		}
	}
}

func TestChanges(t *testing.T) {
	dir := workspace(t, "same", "content", "mode", "back", "gone", "moved/a", "moved/b/c", "kind", "todir", "link -> same", "relink -> same", "deep/er/x")
	f := open(t, Config{Dir: dir, Overlay: true})
	err := errors.Join(
		write(f, "/content", "new", os.O_TRUNC), f.Chmod("/mode", 0o755), f.Chmod("/same", 0o600), f.Chmod("/same", 0o644),
		write(f, "/back", "x", os.O_TRUNC), write(f, "/back", "back", os.O_TRUNC), f.Remove("/gone"), f.Rename("/moved", "/to"), f.Rename("/to/a", "/to/a2"),
		f.Remove("/kind"), f.Symlink("same", "/kind"), f.Remove("/todir"), f.Mkdir("/todir", 0o755), write(f, "/todir/x", "x", 0),
		f.Remove("/relink"), f.Symlink("content", "/relink"), f.Remove("/link"), f.Symlink("same", "/link"),
		write(f, "/deep/er/x", "y", os.O_APPEND), f.Mkdir("/new", 0o755), f.Mkdir("/void", 0o755), f.Remove("/void"),
	)
	if err != nil {
		t.Fatal(err)
	}
	all, err := f.Changes()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range all {
		got = append(got, string(c.Kind)+c.Path)
	}
	want := "M/content M/deep/er/x D/gone M/kind M/mode D/moved D/moved/a D/moved/b D/moved/b/c A/new M/relink A/to A/to/a2 A/to/b A/to/b/c M/todir A/todir/x"
	if s := strings.Join(got, " "); s != want {
		t.Errorf("got  %s\nwant %s", s, want)
	}
}

// A file that is open for reading shows what another writes, in an overlay, too.
func TestOverlayReaders(t *testing.T) {
	f := open(t, Config{Dir: workspace(t, "f"), Overlay: true})
	h, err := f.Open("/f")
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if err := errors.Join(write(f, "/f", "more", os.O_APPEND), f.Remove("/f")); err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(h); string(b) != "fmore" || err != nil {
		t.Errorf("%q %v", b, err)
	}
	if _, err := read(f, "/f"); !errors.Is(err, syscall.ENOENT) {
		t.Error(err)
	}
}

func FuzzNames(f *testing.F) {
	for _, s := range []string{"/", "/../..", "/d/../link/x", "/tmp/../dev/fd/0", "//d//.//e/", "/abs/secret", "/.git/../f", "/d/\x00", "/up/../../etc"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		outside := workspace(t, "secret")
		dir := workspace(t, "f", "d/e/g", "abs -> "+outside, "up -> ../"+filepath.Base(outside), "link -> d", ".git/config")
		for _, overlay := range []bool{false, true} {
			fsys := open(t, Config{Dir: dir, Overlay: overlay})
			if s, err := read(fsys, name); err == nil && s == "secret" {
				t.Errorf("%q leads outside", name)
			}
			real, err := fsys.Resolve(name)
			if again, aerr := fsys.Resolve(real); err == nil && (aerr != nil || again != real) {
				t.Errorf("%q is %q is %q, %v", name, real, again, aerr)
			}
			everything(fsys, name)
		}
		for _, n := range []string{outside + "/secret", dir + "/.git/config"} {
			if b, err := os.ReadFile(n); err != nil || !strings.HasSuffix(n, string(b)) {
				t.Errorf("%q: %q %v", n, b, err)
			}
		}
	})
}

package vfs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// workspace makes files below a new directory: "x/" is a directory, "l -> t" a
// link, everything else a file that holds its own name.
func workspace(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, n := range names {
		name, target, link := strings.Cut(n, " -> ")
		full := filepath.Join(dir, name)
		err := os.MkdirAll(filepath.Dir(full), 0o755)
		switch {
		case err != nil:
		case link:
			err = os.Symlink(target, full)
		case strings.HasSuffix(name, "/"):
			err = os.MkdirAll(full, 0o755)
		default:
			err = os.WriteFile(full, []byte(name), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func open(t *testing.T, c Config) *FS {
	t.Helper()
	f, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func write(f *FS, name, s string, flag int) error {
	h, err := f.OpenFile(name, os.O_WRONLY|os.O_CREATE|flag, 0o644)
	if err != nil {
		return err
	}
	_, err = io.WriteString(h, s)
	return errors.Join(err, h.Close())
}

func read(f *FS, name string) (string, error) {
	h, err := f.Open(name)
	if err != nil {
		return "", err
	}
	defer h.Close()
	b, err := io.ReadAll(h)
	return string(b), err
}

// everything calls each operation on name.
func everything(f *FS, name string) map[string]error {
	now := time.Now()
	_, openErr := f.Open(name)
	_, statErr := f.Stat(name)
	_, lstatErr := f.Lstat(name)
	_, dirErr := f.ReadDir(name)
	_, linkErr := f.Readlink(name)
	_, realErr := f.Resolve(name)
	return map[string]error{
		"open": openErr, "stat": statErr, "lstat": lstatErr, "readdir": dirErr, "readlink": linkErr, "resolve": realErr,
		"write": write(f, name, "evil", 0), "append": write(f, name, "evil", os.O_APPEND), "trunc": write(f, name, "", os.O_TRUNC),
		"access": f.Access(name, 4), "mkdir": f.Mkdir(name, 0o755), "chmod": f.Chmod(name, 0o777), "chtimes": f.Chtimes(name, now, now, true),
		"truncate": f.Truncate(name, 0), "symlink": f.Symlink("evil", name), "rename to": f.Rename("/f", name),
		"link to": f.Link("/f", name), "rename from": f.Rename(name, "/moved"), "link from": f.Link(name, "/linked"), "remove": f.Remove(name),
	}
}

// A way out of every class reads and changes nothing outside, and no error tells
// where the workspace is.
func TestEscape(t *testing.T) {
	for _, overlay := range []bool{false, true} {
		outside := workspace(t, "secret", "d/secret")
		up := "../" + filepath.Base(outside)
		for _, name := range []string{
			"/abs/secret", "/up/secret", "/up2/d/secret", "/file", "/chain/secret", "/d/deep/secret", "/../../../../../.." + outside + "/secret",
			outside + "/secret", "/d/../.." + outside + "/secret", "//" + outside + "/secret", "/proc/self/environ", "/proc/self/cwd/f",
			"/etc/passwd", "/dev/../etc/passwd", "/tmp/../etc/passwd", "/d/deep/../secret", "/dev/fd/../../etc/passwd",
			"/tmp/../.." + outside + "/secret", "/loop", "/f/../../etc/passwd", "/a\x00b", "/" + strings.Repeat("x", 256), strings.Repeat("/x", 3000),
		} {
			dir := workspace(t, "f", "abs -> "+outside, "up -> "+up, "up2 -> ../../../../../../"+outside, "file -> "+outside+"/secret",
				"chain -> d/link", "d/link -> ../up", "d/deep -> "+outside+"/d", "loop -> loop")
			f := open(t, Config{Dir: dir, Overlay: overlay})
			for op, err := range everything(f, name) {
				if err == nil && !strings.HasPrefix(name, "/loop") && op != "write" && op != "append" && op != "trunc" {
					// Links can be made dangling or followed to names inside that
					// are free; the content outside is what counts.
					continue
				}
				var errno syscall.Errno
				if err != nil && !errors.As(err, &errno) {
					t.Errorf("%s %q: no errno: %v", op, name, err)
				}
				if err != nil && strings.Contains(strings.ReplaceAll(err.Error(), name, ""), filepath.Dir(dir)) {
					t.Errorf("%s %q tells of the host: %v", op, name, err)
				}
			}
			if s, err := read(f, name); err == nil && strings.Contains(s, "secret") {
				t.Errorf("read %q: %q", name, s)
			}
			for _, n := range []string{"secret", "d/secret"} {
				if b, err := os.ReadFile(filepath.Join(outside, n)); string(b) != n {
					t.Fatalf("after %q: %s holds %q, %v", name, n, b, err)
				}
			}
			if all, err := os.ReadDir(outside); len(all) != 2 || err != nil {
				t.Fatalf("after %q outside: %v %v", name, all, err)
			}
		}
	}
}

// Links lead inside: an absolute target starts at the workspace, and ".." stays
// there.
func TestLinksInside(t *testing.T) {
	dir := workspace(t, "d/e/f", "abs -> /d/e", "d/up -> ../../../../d/e/f", "d/rel -> e/../e/./f", "d/dir -> /d/e/", "top -> /..")
	f := open(t, Config{Dir: dir})
	for name, want := range map[string]string{
		"/abs/f": "/d/e/f", "/d/up": "/d/e/f", "/d/rel": "/d/e/f", "/d/dir/f": "/d/e/f", "/top/d/e/f": "/d/e/f", "/abs/../e/f": "/d/e/f",
		"/../d/./e//f": "/d/e/f", "/abs/": "/d/e", "/..": "/", "/tmp/../d": "/d", "/dev/null": "/dev/null", "/tmp": "/tmp",
	} {
		if got, err := f.Resolve(name); got != want || err != nil {
			t.Errorf("%s is %s, %v, want %s", name, got, err, want)
		}
	}
	if _, err := f.Resolve("/d/e/f/x"); !errors.Is(err, syscall.ENOTDIR) {
		t.Error(err)
	}
}

// What is not a file, a directory or a link is seen and not opened.
func TestSpecialFiles(t *testing.T) {
	dir := workspace(t, "f")
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o666); err != nil {
		t.Fatal(err)
	}
	special := map[string]syscall.Errno{"/pipe": syscall.EACCES}
	if err := syscall.Mknod(filepath.Join(dir, "null"), syscall.S_IFCHR|0o666, 1<<8|3); err == nil {
		special["/null"] = syscall.EACCES
	}
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd)
	if err := syscall.Bind(fd, &syscall.SockaddrUnix{Name: filepath.Join(dir, "socket")}); err == nil {
		special["/socket"] = syscall.ENXIO
	}
	for _, overlay := range []bool{false, true} {
		f := open(t, Config{Dir: dir, Overlay: overlay})
		for name, want := range special {
			for _, flag := range []int{os.O_RDONLY, os.O_WRONLY, os.O_RDWR, os.O_WRONLY | os.O_TRUNC | os.O_CREATE} {
				if h, err := f.OpenFile(name, flag, 0o644); !errors.Is(err, want) {
					t.Errorf("%s %#x: %v %v", name, flag, h, err)
				}
			}
			if i, err := f.Stat(name); err != nil || i.Mode().IsRegular() {
				t.Errorf("%s: %v %v", name, i, err)
			}
		}
	}
}

// A file system of the kernel that is mounted below the workspace is not
// entered.
func TestKernelFileSystems(t *testing.T) {
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skip("no /proc")
	}
	if f, err := Open(Config{Dir: "/proc"}); err == nil {
		f.Close()
		t.Error("/proc was taken for a workspace")
	}
	f := open(t, Config{Dir: "/"})
	for _, name := range []string{"/proc/self/status", "/proc/self/environ", "/proc/self/root/etc/passwd", "/proc/1/cmdline", "/proc/sys/kernel/hostname"} {
		if s, err := read(f, name); !errors.Is(err, syscall.EACCES) && !errors.Is(err, syscall.ENOENT) {
			t.Errorf("%s: %.20q %v", name, s, err)
		}
	}
	if _, err := f.ReadDir("/proc"); !errors.Is(err, syscall.EACCES) {
		t.Error(err)
	}
}

func TestAttributes(t *testing.T) {
	dir := workspace(t, "f", "d/")
	f := open(t, Config{Dir: dir})
	if err := f.Chmod("/f", 0o755|fs.ModeSetuid|fs.ModeSetgid); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"/f", "/d", "/", "/tmp", "/dev", "/dev/null"} {
		i, err := f.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		s := i.Sys().(*syscall.Stat_t)
		if a := Sys(i); s.Uid != 1000 || s.Gid != 1000 || a.Uid != 1000 || a.Nlink == 0 || a.Ino == 0 {
			t.Errorf("%s: %+v", name, s)
		}
		if i.Mode()&(fs.ModeSetuid|fs.ModeSetgid) != 0 {
			t.Errorf("%s: %v", name, i.Mode())
		}
	}
	late := time.Date(2500, 1, 2, 3, 4, 5, 0, time.UTC)
	if err := f.Chtimes("/tmp", late, late, true); err != nil {
		t.Error(err)
	}
	if i, err := f.Stat("/tmp"); err != nil || !i.ModTime().Equal(late) || Sys(i).Atime.Year() != 2500 {
		t.Error(i.ModTime(), err)
	}
}

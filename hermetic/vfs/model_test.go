package vfs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"syscall"
	"testing"
	"time"
)

// files is what both sides of the model can do.
type files interface {
	OpenFile(name string, flag int, perm fs.FileMode) (File, error)
	Stat(name string) (fs.FileInfo, error)
	Lstat(name string) (fs.FileInfo, error)
	ReadDir(name string) ([]fs.DirEntry, error)
	Readlink(name string) (string, error)
	Mkdir(name string, perm fs.FileMode) error
	Remove(name string) error
	Rename(from, to string) error
	Link(from, to string) error
	Symlink(target, name string) error
	Chmod(name string, mode fs.FileMode) error
	Chtimes(name string, atime, mtime time.Time, follow bool) error
	Truncate(name string, size int64) error
}

// below is an FS below one of its directories.
type below struct {
	*FS
	dir string
}

func (b below) OpenFile(n string, flag int, perm fs.FileMode) (File, error) {
	return b.FS.OpenFile(b.dir+n, flag, perm)
}
func (b below) Stat(n string) (fs.FileInfo, error)      { return b.FS.Stat(b.dir + n) }
func (b below) Lstat(n string) (fs.FileInfo, error)     { return b.FS.Lstat(b.dir + n) }
func (b below) ReadDir(n string) ([]fs.DirEntry, error) { return b.FS.ReadDir(b.dir + n) }
func (b below) Readlink(n string) (string, error)       { return b.FS.Readlink(b.dir + n) }
func (b below) Mkdir(n string, perm fs.FileMode) error  { return b.FS.Mkdir(b.dir+n, perm) }
func (b below) Remove(n string) error                   { return b.FS.Remove(b.dir + n) }
func (b below) Rename(from, to string) error            { return b.FS.Rename(b.dir+from, b.dir+to) }
func (b below) Link(from, to string) error              { return b.FS.Link(b.dir+from, b.dir+to) }
func (b below) Symlink(target, n string) error          { return b.FS.Symlink(target, b.dir+n) }
func (b below) Chmod(n string, mode fs.FileMode) error  { return b.FS.Chmod(b.dir+n, mode) }
func (b below) Truncate(n string, size int64) error     { return b.FS.Truncate(b.dir+n, size) }
func (b below) Chtimes(n string, a, m time.Time, follow bool) error {
	return b.FS.Chtimes(b.dir+n, a, m, follow)
}

// real is the model: plain system calls below a directory of the host.
type real struct{ dir string }

func (r real) OpenFile(n string, flag int, perm fs.FileMode) (File, error) {
	f, err := os.OpenFile(r.dir+n, flag, perm)
	if err != nil {
		return nil, err
	}
	return f, nil
}
func (r real) Stat(n string) (fs.FileInfo, error)      { return os.Stat(r.dir + n) }
func (r real) Lstat(n string) (fs.FileInfo, error)     { return os.Lstat(r.dir + n) }
func (r real) ReadDir(n string) ([]fs.DirEntry, error) { return os.ReadDir(r.dir + n) }
func (r real) Readlink(n string) (string, error)       { return os.Readlink(r.dir + n) }
func (r real) Mkdir(n string, perm fs.FileMode) error  { return syscall.Mkdir(r.dir+n, uint32(perm)) }

func (r real) Rename(from, to string) error           { return syscall.Rename(r.dir+from, r.dir+to) }
func (r real) Link(from, to string) error             { return os.Link(r.dir+from, r.dir+to) }
func (r real) Symlink(target, n string) error         { return os.Symlink(target, r.dir+n) }
func (r real) Chmod(n string, mode fs.FileMode) error { return os.Chmod(r.dir+n, mode) }
func (r real) Truncate(n string, size int64) error    { return os.Truncate(r.dir+n, size) }
func (r real) Chtimes(n string, a, m time.Time, follow bool) error {
	if _, err := r.Lstat(n); err != nil || !follow {
		return err
	}
	return os.Chtimes(r.dir+n, a, m)
}

func (r real) Remove(n string) error {
	i, err := r.Lstat(n)
	if err == nil && i.IsDir() {
		return syscall.Rmdir(r.dir + n)
	}
	return syscall.Unlink(r.dir + n)
}

// outcome is an error as far as both sides must agree.
func outcome(err error) string {
	var errno syscall.Errno
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &errno):
		return errno.Error()
	}
	return err.Error()
}

type gen struct{ *rand.Rand }

func (g gen) name() string {
	n := ""
	for range 1 + g.IntN(3) {
		n += "/" + string("abc"[g.IntN(3)])
		switch g.IntN(30) {
		case 0:
			n += "/.."
		case 1:
			n += "/."
		case 2:
			n += "//"
		}
	}
	if g.IntN(12) == 0 {
		n += "/"
	}
	return n
}

func (g gen) data() []byte {
	return bytes.Repeat([]byte{byte('a' + g.IntN(26))}, []int{0, 1, 10, 40_000}[g.IntN(4)])
}

// step does one random thing and tells what came of it.
func step(g gen, f files) string {
	n, m := g.name(), g.name()
	target := strings.TrimPrefix(strings.ReplaceAll(n, "/..", ""), "/")
	data, size, roll := g.data(), int64(g.IntN(70_000)), g.IntN(100)
	flag := []int{
		os.O_RDONLY, os.O_RDWR, os.O_WRONLY | os.O_CREATE, os.O_WRONLY | os.O_CREATE | os.O_TRUNC,
		os.O_RDWR | os.O_CREATE | os.O_EXCL, os.O_WRONLY | os.O_APPEND | os.O_CREATE, os.O_RDONLY | syscall.O_DIRECTORY,
		os.O_RDWR | os.O_TRUNC, os.O_RDONLY | syscall.O_NOFOLLOW, os.O_WRONLY, os.O_RDONLY | os.O_CREATE,
	}[g.IntN(11)]
	stamp := time.Unix(int64(g.IntN(1_000_000_000)), 0)
	mode := []fs.FileMode{0o755, 0o644, 0o600, 0o777}[g.IntN(4)]
	say := func(op string, err error, more ...any) string {
		return fmt.Sprintln(append([]any{op, n, outcome(err)}, more...)...)
	}
	switch {
	case roll < 35:
		return say(fmt.Sprintf("open %#x", flag), nil, use(f, n, flag, data, size))
	case roll < 47:
		return say("mkdir", f.Mkdir(n, 0o755))
	case roll < 57:
		return say("remove", f.Remove(n))
	case roll < 69:
		return say("rename "+m, f.Rename(m, n))
	case roll < 74:
		return say("link "+m, f.Link(m, n))
	case roll < 81:
		return say("symlink "+target, f.Symlink(target, m), m)
	case roll < 84:
		if i, err := f.Stat(n); err == nil && i.IsDir() {
			mode = 0o755
		}
		return say("chmod", f.Chmod(n, mode), mode)
	case roll < 86:
		return say("truncate", f.Truncate(n, size), size)
	case roll < 88:
		return say("chtimes", f.Chtimes(n, stamp, stamp, true))
	case roll < 92:
		i, err := f.Lstat(n)
		return say("lstat", err, describe(i, err))
	case roll < 95:
		i, err := f.Stat(n)
		return say("stat", err, describe(i, err))
	case roll < 97:
		s, err := f.Readlink(n)
		return say("readlink", err, s)
	}
	l, err := f.ReadDir(n)
	return say("readdir", err, len(l))
}

func describe(i fs.FileInfo, err error) string {
	if err != nil {
		return ""
	}
	s := fmt.Sprint(i.Mode())
	if i.Mode().IsRegular() {
		s += fmt.Sprint(i.Size(), " links ", nlink(i))
	}
	return s
}

func nlink(i fs.FileInfo) uint64 { return uint64(i.Sys().(*syscall.Stat_t).Nlink) }

// use opens, writes, seeks, reads.
func use(f files, n string, flag int, data []byte, size int64) string {
	h, err := f.OpenFile(n, flag, 0o644)
	if err != nil {
		return outcome(err)
	}
	defer h.Close()
	s := "opened"
	i, err := h.Stat()
	if s += describe(i, err); err != nil || i.IsDir() {
		return s
	}
	k, err := h.Write(data)
	s += fmt.Sprint(" wrote ", k, " ", outcome(err))
	if size%3 == 0 {
		s += " truncate " + outcome(h.Truncate(size))
	}
	at, err := h.Seek(-size/2, []int{io.SeekEnd, io.SeekStart, io.SeekCurrent}[size%3])
	s += fmt.Sprint(" seek ", at, " ", outcome(err))
	if size%5 == 0 {
		k, err = h.Write(data)
		s += fmt.Sprint(" wrote ", k, " ", outcome(err))
	}
	_, err = h.Seek(size/3, io.SeekStart)
	s += outcome(err)
	got, err := io.ReadAll(h)
	s += fmt.Sprint(" read ", len(got), " ", outcome(err))
	p := make([]byte, 100)
	k, err = h.ReadAt(p, size/4)
	return s + fmt.Sprint(" at ", k, " ", outcome(err), " ", string(p[:k]))
}

// picture is everything below dir.
func picture(t *testing.T, f files) string {
	t.Helper()
	var all []string
	var look func(dir string)
	look = func(dir string) {
		l, err := f.ReadDir(dir + "/")
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range l {
			n := dir + "/" + e.Name()
			i, err := f.Lstat(n)
			line := n + " " + describe(i, err)
			switch {
			case err != nil:
				t.Fatal(err)
			case i.Mode()&fs.ModeSymlink != 0:
				s, err := f.Readlink(n)
				line += " -> " + s + outcome(err)
			case i.IsDir():
				look(n)
			default:
				h, err := f.OpenFile(n, os.O_RDONLY, 0)
				if err != nil {
					t.Fatal(err)
				}
				b, err := io.ReadAll(h)
				if err != nil {
					t.Fatal(err)
				}
				line += fmt.Sprintf(" %x", bytes.TrimLeft(b, "\x00"))
				h.Close()
			}
			all = append(all, line)
		}
	}
	look("")
	sort.Strings(all)
	return strings.Join(all, "\n")
}

// The same random operations give the same errors and the same files as plain
// system calls do.
func TestModel(t *testing.T) {
	for _, kind := range []string{"direct", "overlay", "tmp", "overlay on files"} {
		t.Run(kind, func(t *testing.T) {
			for seed := range uint64(4) {
				model(t, kind, seed)
			}
		})
	}
}

func model(t *testing.T, kind string, seed uint64) {
	t.Helper()
	dir, want := t.TempDir(), real{t.TempDir()}
	if kind == "overlay on files" {
		g := gen{rand.New(rand.NewPCG(seed, 2))}
		for range 60 {
			step(g, real{dir})
		}
		partLinks(t, dir)
		if err := os.CopyFS(want.dir, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
	}
	before := picture(t, real{dir})
	fsys, err := Open(Config{Dir: dir, Overlay: strings.HasPrefix(kind, "overlay")})
	if err != nil {
		t.Fatal(err)
	}
	defer fsys.Close()
	var got files = fsys
	if kind == "tmp" {
		got = below{fsys, "/tmp/w"}
		if err := fsys.Mkdir("/tmp/w", 0o755); err != nil {
			t.Fatal(err)
		}
	}
	a, b := gen{rand.New(rand.NewPCG(seed, 1))}, gen{rand.New(rand.NewPCG(seed, 1))}
	var log []string
	for i := range 400 {
		x, y := step(a, want), step(b, got)
		log = append(log, y)
		if x != y {
			t.Fatalf("seed %d step %d:\nplain: %sours:  %s\nbefore:\n%s", seed, i, x, y, strings.Join(log[max(0, len(log)-8):], ""))
		}
		if i%50 == 49 {
			if x, y := picture(t, want), picture(t, got); x != y {
				t.Fatalf("seed %d step %d: plain\n%s\nours\n%s", seed, i, x, y)
			}
		}
	}
	if kind != "direct" && picture(t, real{dir}) != before {
		t.Error("the workspace was changed")
	}
	if kind != "tmp" && kind != "direct" {
		checkChanges(t, fsys, real{dir}, want)
	}
}

// partLinks gives every name a file of its own: an overlay does so.
func partLinks(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.Type()&fs.ModeSymlink != 0:
			return os.Remove(p)
		case !e.Type().IsRegular():
			return nil
		}
		b, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		if err := os.Remove(p); err != nil {
			return err
		}
		return os.WriteFile(p, b, 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// checkChanges holds Changes against what two directories show.
func checkChanges(t *testing.T, f *FS, was, now real) {
	t.Helper()
	lines := func(r real) map[string]string {
		m := map[string]string{}
		for l := range strings.SplitSeq(picture(t, r), "\n") {
			name, rest, _ := strings.Cut(l, " ")
			if at := strings.Index(rest, " links "); at >= 0 {
				_, after, _ := strings.Cut(rest[at+7:], " ")
				rest = rest[:at] + after
			}
			m[name] = rest
		}
		delete(m, "")
		return m
	}
	old, cur := lines(was), lines(now)
	var want []string
	for n, s := range cur {
		if o, ok := old[n]; !ok {
			want = append(want, "A "+n)
		} else if o != s {
			want = append(want, "M "+n)
		}
	}
	for n := range old {
		if _, ok := cur[n]; !ok {
			want = append(want, "D "+n)
		}
	}
	sort.Slice(want, func(i, j int) bool { return want[i][2:] < want[j][2:] })
	all, err := f.Changes()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range all {
		got = append(got, string(c.Kind)+" "+c.Path)
	}
	if a, b := strings.Join(want, "\n"), strings.Join(got, "\n"); a != b {
		t.Errorf("changes: want\n%s\ngot\n%s", a, b)
	}
}

package tar_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"egressd/hermetic/command"
	"egressd/hermetic/limits"
	"egressd/hermetic/vfs"
)

// rig is a workspace with commands in it.
type rig struct {
	t   *testing.T
	dir string
	c   *command.Call
	ctx context.Context
}

func newRig(t *testing.T, l limits.Limits, files map[string]string) *rig {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		full := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		at := time.Date(2024, 5, 6, 7, 8, 9, 0, time.UTC)
		if err := os.Chtimes(full, at, at); err != nil {
			t.Fatal(err)
		}
	}
	ctx, b, stop := limits.New(t.Context(), l)
	f, err := vfs.Open(vfs.Config{Dir: dir, Written: b.Written})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(); _ = f.Close() })
	s := &command.Session{FS: f, Budget: b, Now: time.Now}
	return &rig{t, dir, &command.Call{Dir: "/", Umask: 0o022, Session: s}, ctx}
}

// run reports the output, errors after it, and the status.
func (r *rig) run(stdin, line string) (string, int) {
	var out bytes.Buffer
	args := strings.Fields(line)
	status := commands()[args[0]](r.ctx, r.c.With(args, strings.NewReader(stdin), &out, &out))
	return out.String(), status
}

func (r *rig) file(name string) string {
	b, err := os.ReadFile(filepath.Join(r.dir, name))
	if err != nil {
		return "(none)"
	}
	return string(b)
}

// step is a command and what GNU tar 1.34 or gzip 1.12 writes.
type step struct {
	line, want string
	status     int
}

func (r *rig) steps(all []step) {
	r.t.Helper()
	for _, s := range all {
		if got, status := r.run("", s.line); got != s.want || status != s.status {
			r.t.Errorf("%s: %d\n%s\nwant %d\n%s", s.line, status, got, s.status, s.want)
		}
	}
}

func TestTar(t *testing.T) {
	r := newRig(t, limits.Limits{}, map[string]string{"d/a": "a\n", "d/b": "bb\n", "d/e/f": "", "junk": "junk\n", "list": "d/a\n"})
	failed := "tar: Exiting with failure status due to previous errors\n"
	usage := "Try 'tar --help' or 'tar --usage' for more information.\n"
	r.steps([]step{
		{"tar cvf x.tar d/a d/b d/e", "d/a\nd/b\nd/e/\nd/e/f\n", 0},
		{"tar tf x.tar", "d/a\nd/b\nd/e/\nd/e/f\n", 0},
		{"tar -tvf x.tar d/b", "-rw-r--r-- user/user         3 2024-05-06 07:08 d/b\n", 0},
		{"tar xOf x.tar d/b", "bb\n", 0},
		{"tar xf x.tar nomember", "tar: nomember: Not found in archive\n" + failed, 2},
		{"tar xf x.tar -C nodir", "tar: nodir: Cannot open: No such file or directory\ntar: Error is not recoverable: exiting now\n", 2},
		{"tar xf x.tar -k d/a", "tar: d/a: Cannot open: File exists\n" + failed, 2},
		{"tar xf x.tar --skip-old-files", "", 0},
		{"tar tf nope.tar", "tar: nope.tar: Cannot open: No such file or directory\ntar: Error is not recoverable: exiting now\n", 2},
		{"tar tf junk", "tar: This does not look like a tar archive\n" + failed, 2},
		{"tar cf y.tar nofile", "tar: nofile: Cannot stat: No such file or directory\n" + failed, 2},
		{"tar cf z.tar", "tar: Cowardly refusing to create an empty archive\n" + usage, 2},
		{"tar", "tar: You must specify one of the '-Acdtrux', '--delete' or '--test-label' options\n" + usage, 2},
		{"tar --bogus", "tar: unrecognized option '--bogus'\n" + usage, 64},
		{"tar -czf z.tgz --owner=u:5 --group=g:6 d/a", "", 0},
		{"tar tvf z.tgz", "-rw-r--r-- u/g               2 2024-05-06 07:08 d/a\n", 0},
		{"tar cvf e.tar --exclude=a --exclude=e d/a d/b d/e", "d/b\n", 0},
		{"tar cf t.tar --transform s,^d,q/r, d/b -C d a", "", 0},
		{"tar rf t.tar -T list", "", 0},
		{"tar tf t.tar", "q/r/b\na\nd/a\n", 0},
		{"tar cf abs.tar /d/a", "tar: Removing leading `/' from member names\n", 0},
		{"tar tf abs.tar", "d/a\n", 0},
		{"tar cf self.tar d/b self.tar", "tar: self.tar: file is the archive; not dumped\n", 0},
		{"tar xf x.tar --one-top-level=top --strip-components=1", "", 0},
	})
	if r.file("top/b") != "bb\n" || r.file("top/e/f") != "" {
		t.Error("not extracted")
	}
	if i, err := os.Stat(filepath.Join(r.dir, "top/b")); err != nil || i.ModTime().Unix() != 1714979289 {
		t.Error(i, err)
	}
	if b := r.file("x.tar"); len(b) != 10240 {
		t.Error(len(b))
	}
}

// hostile is an archive of what headers say; every file holds "evil".
func hostile(t *testing.T, headers ...tar.Header) string {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range headers {
		if h.Typeflag == tar.TypeReg {
			h.Size = 4
		}
		h.Mode = 0o6777
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			if _, err := w.Write([]byte("evil")); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// An archive writes below the directory where it is extracted, and nowhere else.
func TestHostileArchives(t *testing.T) {
	file := func(name string) tar.Header { return tar.Header{Name: name, Typeflag: tar.TypeReg} }
	link := func(name, target string) tar.Header {
		return tar.Header{Name: name, Typeflag: tar.TypeSymlink, Linkname: target}
	}
	for what, a := range map[string]string{
		"dotdot":        hostile(t, file("../kept")),
		"inner dotdot":  hostile(t, file("a/../../kept")),
		"absolute":      hostile(t, file("/kept")),
		"link then":     hostile(t, link("l", ".."), file("l/kept")),
		"absolute link": hostile(t, link("l", "/"), file("l/kept"), file("l")),
		"deep link":     hostile(t, link("a/l", "../.."), link("b", "a/l"), file("b/kept"), file("a/l/kept")),
		"link file":     hostile(t, link("l", "../kept"), file("l")),
		"hard link":     hostile(t, tar.Header{Name: "h", Typeflag: tar.TypeLink, Linkname: "../kept"}, file("h")),
		"device":        hostile(t, tar.Header{Name: "dev", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 3}, tar.Header{Name: "p", Typeflag: tar.TypeFifo}),
		"git":           hostile(t, file(".git/hooks/post-checkout"), link(".git", "/w")),
	} {
		r := newRig(t, limits.Limits{}, map[string]string{"kept": "kept", "w/x": ""})
		r.c.Dir = "/w"
		out, _ := r.run(a, "tar xf -")
		if r.file("kept") != "kept" {
			t.Errorf("%s: wrote outside: %s", what, out)
		}
		if _, err := os.Lstat(filepath.Join(r.dir, "w/.git")); err == nil {
			t.Errorf("%s: made .git", what)
		}
		_ = filepath.WalkDir(r.dir, func(p string, e os.DirEntry, err error) error {
			if i, ierr := e.Info(); ierr == nil && i.Mode()&(os.ModeSetuid|os.ModeDevice|os.ModeNamedPipe) != 0 {
				t.Errorf("%s: %s is %v", what, p, i.Mode())
			}
			return err
		})
	}
}

func TestGzip(t *testing.T) {
	text := strings.Repeat("some text\n", 1000)
	r := newRig(t, limits.Limits{}, map[string]string{"a": text, "d/x": "x", "junk": "junk\n"})
	r.steps([]step{
		{"gzip -k a", "", 0},
		{"gunzip a.gz", "gzip: a already exists;\tnot overwritten\n", 2},
		{"gzip a", "gzip: a.gz already exists;\tnot overwritten\n", 2},
		{"gzip -f a", "", 0},
		{"zcat a", text, 0},
		{"gzip -tv a.gz", "a.gz:\t OK\n", 0},
		{"gzip a.gz", "gzip: a.gz already has .gz suffix -- unchanged\n", 2},
		{"gunzip a", "", 0},
		{"gzip nope", "gzip: nope: No such file or directory\n", 1},
		{"gzip d", "gzip: d is a directory -- ignored\n", 2},
		{"gzip -r d", "", 0},
		{"gunzip junk", "gzip: junk: unknown suffix -- ignored\n", 2},
		{"gzip -dc junk", "\ngzip: junk: not in gzip format\n", 1},
	})
	if r.file("a") != text || r.file("d/x.gz") == "(none)" {
		t.Error("not there")
	}
	packed, status := r.run(text, "gzip -c9")
	if got, s := r.run(packed, "gunzip"); status != 0 || s != 0 || got != text {
		t.Error(status, s)
	}
	if got, s := r.run(packed[:len(packed)-20], "gzip -dc"); s != 1 || !strings.HasSuffix(got, "\ngzip: stdin: unexpected end of file\n") {
		t.Error(s, got)
	}
}

// A small archive that unpacks to very much meets the bound of what is written.
func TestBomb(t *testing.T) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	for range 64 {
		if _, err := z.Write(make([]byte, 1<<20)); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	r := newRig(t, limits.Limits{Written: 1 << 20}, map[string]string{"bomb.gz": b.String()})
	if out, status := r.run("", "gunzip bomb.gz"); status == 0 || r.c.Budget.Cause() == nil {
		t.Error(status, out)
	}
	if i, err := os.Stat(filepath.Join(r.dir, "bomb")); err == nil && i.Size() > 1<<20 {
		t.Error(i.Size())
	}
}

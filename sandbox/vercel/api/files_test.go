package api

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func fileOf(path, content string, mode fs.FileMode) File {
	return File{Path: path, Mode: mode, Size: int64(len(content)), Open: func() (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(content)), nil
	}}
}

// unpack reads an upload.
func unpack(t *testing.T, body string) (all []*tar.Header, contents []string) {
	t.Helper()
	z, err := gzip.NewReader(strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	tr := tar.NewReader(z)
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return all, contents
		}
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(tr)
		if err != nil {
			t.Fatal(err)
		}
		all, contents = append(all, h), append(contents, string(b))
	}
}

func TestWriteFiles(t *testing.T) {
	deep := "/" + strings.Repeat("directory/", 12) + "file"        // for ustar's prefix
	long := "/d/" + strings.Repeat("x", 150)                       // for pax
	deeper := "/" + strings.Repeat(strings.Repeat("y", 99)+"/", 9) // longer than ustar has room for
	umlaut := "/ä/\xff"                                            // UTF-8, and not
	d, c := newDouble(t, says(200, `{}`))
	files := []File{
		fileOf("/vercel/probe/hello.txt", "hello", 0), fileOf("/vercel/probe/run.sh", "#!", 0o755),
		{Path: "/empty"},
		fileOf(deep, "deep", 0o600), fileOf(long, "long", 0), fileOf(deeper+"f", "deeper", 0), fileOf(umlaut, "u", 0),
		fileOf("/mode/0000", "n", fs.ModeIrregular),
	}
	var told []int64
	if err := c.WriteFiles(context.Background(), "sbx_V", slices.Values(files), func(n int, b int64) { told = append(told, int64(n), b) }); err != nil {
		t.Fatal(err)
	}
	got := d.asked[0]
	if got.path != "/api/v2/sandboxes/sessions/sbx_V/fs/write" || got.header.Get("Content-Type") != "application/gzip" || got.header.Get("X-Cwd") != "/" {
		t.Errorf("%+v", got)
	}
	heads, contents := unpack(t, got.body)
	for i, f := range files {
		h := heads[i]
		mode := int64(f.Mode.Perm())
		if f.Mode == 0 {
			mode = 0o644
		}
		if h.Name != f.Path[1:] || h.Mode != mode || h.Typeflag != tar.TypeReg || h.Uid != 0 || h.Gid != 0 || h.Uname != "" || h.Size != f.Size || time.Since(h.ModTime) > time.Minute {
			t.Errorf("%+v", h)
		}
		if h.Format == tar.FormatGNU || i < 4 && h.Format != tar.FormatUSTAR {
			t.Errorf("%s is written as %v", h.Name, h.Format)
		}
	}
	if want := []string{"hello", "#!", "", "deep", "long", "deeper", "u", "n"}; !slices.Equal(contents, want) {
		t.Errorf("contents %q", contents)
	}
	if !slices.Equal(told, []int64{8, 23}) {
		t.Errorf("told %v", told)
	}
}

// zeros is a file of n zero bytes.
func zeros(path string, n int64) File {
	return File{Path: path, Size: n, Open: func() (io.ReadCloser, error) { return io.NopCloser(io.LimitReader(zero{}, n)), nil }}
}

type zero struct{}

func (zero) Read(b []byte) (int, error) { clear(b); return len(b), nil }

func TestBatches(t *testing.T) {
	for _, tt := range []struct {
		name  string
		files []File
		want  string // files of each request
	}{
		{"none", nil, "[]"},
		{"by size", []File{zeros("/a", 40<<20), zeros("/b", 24<<20), zeros("/c", 1), zeros("/d", 100<<20), zeros("/e", 1)}, "[2 1 1 1]"},
		{"by number", slices.Repeat([]File{fileOf("/a", "", 0)}, batchFiles+1), fmt.Sprintf("[%d 1]", batchFiles)},
	} {
		s, c := newScript(step{body: `{}`}, step{body: `{}`}, step{body: `{}`}, step{body: `{}`})
		s.deaf = true
		got := []int{}
		if err := c.WriteFiles(context.Background(), "s", slices.Values(tt.files), func(n int, _ int64) { got = append(got, n) }); err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(got) != tt.want || len(s.asked) != len(got) {
			t.Errorf("%s: %v, want %s; %d requests", tt.name, got, tt.want, len(s.asked))
		}
	}
}

// An upload that fails is made again from the start; one of ours is not.
func TestUploadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opened := 0
		f := fileOf("/a", "content", 0)
		open := f.Open
		f.Open = func() (io.ReadCloser, error) { opened++; return open() }
		s, c := newScript(step{status: 503}, step{err: errReset}, step{body: `{}`})
		if err := c.WriteFiles(context.Background(), "s", slices.Values([]File{f}), nil); err != nil || opened != 3 || len(s.asked) != 3 {
			t.Errorf("%v, opened %d times, %d requests", err, opened, len(s.asked))
		}
	})
	gone := errors.New("it is gone")
	short := fileOf("/a", "abc", 0)
	short.Size = 10
	for name, f := range map[string]File{
		"cannot be opened": {Path: "/a", Size: 1, Open: func() (io.ReadCloser, error) { return nil, gone }},
		"became shorter":   short,
		"cannot be read":   {Path: "/a", Size: 1, Open: func() (io.ReadCloser, error) { return io.NopCloser(iotestErr{gone}), nil }},
		"no path":          fileOf("a", "", 0),
		"dots":             fileOf("/a/../b", "", 0),
		"a NUL":            fileOf("/a\x00b", "", 0),
		"the root":         fileOf("/", "", 0),
	} {
		opened := 0
		if open := f.Open; open != nil {
			f.Open = func() (io.ReadCloser, error) { opened++; return open() }
		}
		_, c := newDouble(t) // it is asked nothing that it answers
		if err := c.WriteFiles(context.Background(), "s", slices.Values([]File{f}), nil); err == nil || strings.Contains(err.Error(), "nothing more was to be asked") {
			t.Errorf("%s: %v", name, err)
		}
		if opened > 1 {
			t.Errorf("%s: it was opened %d times", name, opened)
		}
	}
}

type iotestErr struct{ err error }

func (e iotestErr) Read([]byte) (int, error) { return 0, e.err }

// What does not fit in memory at once goes through.
func TestUploadEarlyAnswer(t *testing.T) {
	_, c := newDouble(t, says(413, `{"error":{"code":"too_large","message":"no"}}`))
	err := c.WriteFiles(context.Background(), "s", slices.Values([]File{zeros("/a", 8<<20)}), nil)
	var e *Error
	if !errors.As(err, &e) || e.Status != 413 {
		t.Error(err)
	}
}

func TestReadFile(t *testing.T) {
	data := bytes.Repeat([]byte{0, 1, 0xff}, 100_000)
	octets := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Header().Set("Content-Disposition", `attachment; filename="hello.txt"`)
		_, _ = w.Write(data)
	}
	d, c := newDouble(t, octets)
	r, err := c.ReadFile(context.Background(), "sbx_V", "probe/hello.txt", "")
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(r)
	_ = r.Close()
	if err != nil || !bytes.Equal(got, data) || d.asked[0].body != `{"path":"probe/hello.txt"}` {
		t.Errorf("%v, %d bytes, asked %s", err, len(got), d.asked[0].body)
	}
	_, c = newDouble(t, says(404, `{"error":{"code":"not_found","message":"File not found."}}`))
	if _, err := c.ReadFile(context.Background(), "s", "x", "/y"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	_, c = newDouble(t, says(200, `{"content":"x"}`))
	if _, err := c.ReadFile(context.Background(), "s", "x", ""); err == nil || !strings.Contains(err.Error(), "not a file") {
		t.Error(err)
	}
	cut := func(w http.ResponseWriter, r *http.Request) {
		octets(w, r)
		panic(http.ErrAbortHandler)
	}
	_, c = newDouble(t, cut)
	r, err = c.ReadFile(context.Background(), "s", "x", "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(r); err == nil {
		t.Error("a file that was cut short ended as a whole one")
	}
	_ = r.Close()
}

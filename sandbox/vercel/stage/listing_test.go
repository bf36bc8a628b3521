package stage

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// zipped is a compressed list.
func zipped(t *testing.T, text string) *bytes.Reader {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := io.WriteString(z, text)
	must(t, err)
	must(t, z.Close())
	return bytes.NewReader(b.Bytes())
}

const (
	top  = "d 755 4096 \x00\x00"
	over = "\x00"
	end  = "end\x00"
)

func sumOf(name, body string) string {
	return fmt.Sprintf("%x  ./%s\x00", sha256.Sum256([]byte(body)), name)
}

// A list that is not whole is none: it would delete what was sent.
func TestListingThatIsNone(t *testing.T) {
	dir := t.TempDir()
	paths{"a": "644 a"}.make(t, dir)
	tree, _ := send(t, Config{Dir: dir, MaxFiles: 3, MaxBytes: 10})
	good := top + "f 644 1 a\x00\x00" + over + sumOf("a", "a") + end
	for name, text := range map[string]string{
		"empty": "", "end alone": end, "no top": over + end, "top is a file": "f 644 1 \x00\x00" + over + end, "top alone": top,
		"no end": strings.TrimSuffix(good, end), "cut": good[:len(good)-2], "more": good + "x", "no mode": top + "f a\x00\x00" + over + end,
		"bad mode": top + "f 9 1 a\x00\x00" + over + end, "long": top + "f 644 1 " + strings.Repeat("a", maxRecord) + "\x00\x00" + over + end,
		"size": top + "f 644 -1 a\x00\x00" + over + end, "bad sum": top + over + "12  ./a\x00" + end,
	} {
		var torn *UnreadableError
		if l, err := tree.List(context.Background(), zipped(t, text)); !errors.As(err, &torn) {
			t.Errorf("%s: %v, %v", name, l, err)
		}
	}
	var torn *UnreadableError
	whole := zipped(t, good)
	if _, err := tree.List(context.Background(), io.LimitReader(whole, whole.Size()-3)); !errors.As(err, &torn) {
		t.Error(err)
	}
	for name, text := range map[string]string{
		"files": top + strings.Repeat("f 644 1 a\x00\x00", 9) + over + end,
		"bytes": top + "f 644 999999999999999999 b\x00\x00" + over + end,
	} {
		if _, err := tree.List(context.Background(), zipped(t, text)); !errors.Is(err, errTooLarge) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if l, err := tree.List(context.Background(), zipped(t, good)); err != nil || len(l.Missing()) > 0 {
		t.Error(l, err)
	}
}

// Names of a list are judged as those of an archive.
func TestListingNames(t *testing.T) {
	dir := t.TempDir()
	tree, _ := send(t, Config{Dir: dir})
	var text strings.Builder
	text.WriteString(top)
	for _, name := range []string{"../up", "/abs", "a/../b", ".git/hooks", "x/.GIT/config", "ok"} {
		text.WriteString("d 755 1 " + name + "\x00\x00")
	}
	text.WriteString("p 644 0 fifo\x00\x00" + over + end)
	l, err := tree.List(context.Background(), zipped(t, text.String()))
	must(t, err)
	report, err := tree.MirrorListed(context.Background(), l, nil, "")
	must(t, err)
	if !slices.Equal(report.Added, []string{"ok"}) || len(report.Refused) != 4 {
		t.Errorf("%+v", report)
	}
}

// What changed here after the list was read, so that what is not missing would have
// to be written, changes nothing.
func TestListingMoved(t *testing.T) {
	dir := t.TempDir()
	tree, _ := send(t, Config{Dir: dir})
	paths{"made": "644 m"}.make(t, dir)
	l, err := tree.List(context.Background(), zipped(t, top+"f 644 1 made\x00\x00"+over+sumOf("made", "m")+end))
	must(t, err)
	if len(l.Missing()) > 0 {
		t.Fatal(l.Missing())
	}
	must(t, os.Remove(filepath.Join(dir, "made")))
	if _, err := tree.MirrorListed(context.Background(), l, nil, ""); !errors.Is(err, ErrMoved) {
		t.Error(err)
	}
	paths{"made": "644 x"}.make(t, dir)
	if _, err := tree.MirrorListed(context.Background(), l, nil, ""); !errors.Is(err, ErrMoved) {
		t.Error(err)
	}
}

// Where the mode alone differs there, the content is not missing; where it changed here
// as well, it is, so that it can be put aside.
func TestListingMode(t *testing.T) {
	dir, ctx := t.TempDir(), context.Background()
	paths{"a": "644 a", "b": "644 b", "c": "644 c"}.make(t, dir)
	tree, _ := send(t, Config{Dir: dir})
	must(t, os.WriteFile(filepath.Join(dir, "b"), []byte("B"), 0o644))
	l, err := tree.List(ctx, zipped(t, top+"f 600 1 a\x00\x00f 600 1 b\x00\x00f 600 1 c\x00\x00"+over+sumOf("a", "a")+sumOf("b", "b")+sumOf("c", "c")+end))
	must(t, err)
	if !slices.Equal(l.Missing(), []string{"b"}) {
		t.Errorf("missing: %q", l.Missing())
	}
	tree.hook = func(s step, name string) { // c is saved here in the very moment
		if s == beforeCheck && name == "c" {
			must(t, os.WriteFile(filepath.Join(dir, "c"), []byte("mine"), 0o644))
		}
	}
	b := file("b", "b")
	b.Mode = 0o600
	report, err := tree.MirrorListed(ctx, l, pack(t, "", &tar.Header{Name: "./", Typeflag: tar.TypeDir}, b), "")
	must(t, err)
	if !slices.Equal(report.Changed, []string{"a"}) || len(report.Conflicts) != 2 {
		t.Errorf("%+v", report)
	}
	want := paths{"a": "600 a", "b": "644 B", "c": "644 mine"}
	if got := look(t, dir); !maps.Equal(got, want) {
		t.Errorf("here: %v, want %v", got, want)
	}
}

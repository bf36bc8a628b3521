package stage

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"testing"
)

// announced is the beginning of an archive: a directory, and the head of one file
// that announces size. The contents are not there: to read them is an error.
func announced(t *testing.T, size int64) *bytes.Reader {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	must(t, w.WriteHeader(&tar.Header{Name: "./", Typeflag: tar.TypeDir, Mode: 0o755}))
	must(t, w.WriteHeader(&tar.Header{Name: "./big", Typeflag: tar.TypeReg, Size: size}))
	must(t, z.Close())
	return bytes.NewReader(b.Bytes())
}

// What announces too much, or has too many entries of any kind, is refused before
// contents are read, and is not taken for a torn archive.
func TestAnnounced(t *testing.T) {
	dir := t.TempDir()
	start := paths{"a": "644 a"}
	start.make(t, dir)
	many := []*tar.Header{}
	for i := range 30 {
		many = append(many, &tar.Header{Name: fmt.Sprint("../", i), Typeflag: tar.TypeFifo})
	}
	for name, archive := range map[string]*bytes.Reader{"9 GB": announced(t, 9<<30), "1 PB": announced(t, 1<<50), "many": pack(t, dir, many...)} {
		tree, _ := send(t, Config{Dir: dir, MaxFiles: 20})
		_, err := tree.Mirror(context.Background(), archive, "")
		var torn *UnreadableError
		if !errors.Is(err, errTooLarge) || errors.As(err, &torn) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Of another kind, it does not stand for the directory.
	tree, _ := send(t, Config{Dir: dir})
	var torn *UnreadableError
	if _, err := tree.Mirror(context.Background(), pack(t, "", file(".", "")), ""); !errors.As(err, &torn) {
		t.Error(err)
	}
	if got := look(t, dir); !maps.Equal(got, start) {
		t.Errorf("changed: %v", got)
	}
}

// An archive of very many small files costs little for each: a hostile one is
// refused in a moment.
func TestManyEntries(t *testing.T) {
	dir := t.TempDir()
	const n = 3000
	var many []*tar.Header
	for i := range n {
		many = append(many, &tar.Header{Name: fmt.Sprint("./", i), Typeflag: tar.TypeReg, Mode: 0o644})
	}
	archive := pack(t, dir, many...)
	tree, _ := send(t, Config{Dir: dir, MaxFiles: n - 1})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := tree.Mirror(context.Background(), archive, "")
	runtime.ReadMemStats(&after)
	if !errors.Is(err, errTooLarge) {
		t.Error(err)
	}
	if each := (after.TotalAlloc - before.TotalAlloc) / n; each > 8<<10 {
		t.Errorf("%d bytes for each entry", each)
	}
}

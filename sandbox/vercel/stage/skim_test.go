package stage

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

// tarOf is a compressed tar of entries with contents of their size, made by fill.
func tarOf(t *testing.T, fill func(w *tar.Writer)) *bytes.Reader {
	t.Helper()
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	must(t, err)
	w := tar.NewWriter(z)
	must(t, w.WriteHeader(&tar.Header{Name: "./", Typeflag: tar.TypeDir, Mode: 0o755}))
	fill(w)
	_ = w.Flush() // contents may be missing
	must(t, z.Close())
	return bytes.NewReader(b.Bytes())
}

func skimmed(t *testing.T, c Config, archive io.ReadSeeker) error {
	t.Helper()
	c.Dir = t.TempDir()
	tree, _ := send(t, c)
	return newMirror(context.Background(), tree, "").skim(archive)
}

// The skimmer counts what archive/tar does, in every format.
func TestSkimCounts(t *testing.T) {
	for _, format := range []tar.Format{tar.FormatUSTAR, tar.FormatPAX, tar.FormatGNU} {
		n := 0
		archive := tarOf(t, func(w *tar.Writer) {
			add := func(h *tar.Header) {
				h.Format = format
				must(t, w.WriteHeader(h))
				_, err := io.CopyN(w, strings.NewReader(strings.Repeat("x", 4096)), h.Size)
				must(t, err)
				n++
			}
			for size := range int64(1100) {
				if size < 3 || size > 509 && size < 515 || size > 1020 {
					add(&tar.Header{Name: fmt.Sprint("./", size), Typeflag: tar.TypeReg, Size: size})
				}
			}
			add(&tar.Header{Name: "./link", Linkname: "target", Typeflag: tar.TypeSymlink})
			add(&tar.Header{Name: "./hard", Linkname: "./1", Typeflag: tar.TypeLink})
			add(&tar.Header{Name: "./dir/", Typeflag: tar.TypeDir})
			if format != tar.FormatUSTAR {
				add(&tar.Header{Name: "./" + strings.Repeat("long/", 100), Linkname: strings.Repeat("l/", 100), Typeflag: tar.TypeSymlink})
			}
			if format == tar.FormatPAX {
				add(&tar.Header{Name: "./ü\n", Typeflag: tar.TypeReg, Size: 700, PAXRecords: map[string]string{"VENDOR.x": "size=1\n2 "}})
			}
		})
		if err := skimmed(t, Config{MaxFiles: n}, archive); err != nil {
			t.Errorf("%v: %d entries are refused where as many may be: %v", format, n, err)
		}
		if err := skimmed(t, Config{MaxFiles: n - 2}, archive); !errors.Is(err, errTooLarge) {
			t.Errorf("%v: one more than may be: %v", format, err)
		}
	}
}

// Threat: an archive of very many entries, or a small one that unpacks to very much,
// costs minutes and the disk. Each is refused by its heads alone: what they announce
// is not there, so that reading it would be another error.
func TestSkimRefuses(t *testing.T) {
	announce := func(h *tar.Header) *bytes.Reader {
		return tarOf(t, func(w *tar.Writer) { must(t, w.WriteHeader(h)) })
	}
	for name, archive := range map[string]*bytes.Reader{
		"2 GiB in a hundred bytes": announce(&tar.Header{Name: "./x", Typeflag: tar.TypeReg, Size: 2 << 30}),
		"binary size":              announce(&tar.Header{Name: "./x", Typeflag: tar.TypeReg, Size: 1 << 50, Format: tar.FormatGNU}),
		"size in an extended head": announce(&tar.Header{Name: "./x", Typeflag: tar.TypeReg, Size: 1 << 40, Format: tar.FormatPAX}),
		"too many": tarOf(t, func(w *tar.Writer) {
			for i := range 30_000 {
				must(t, w.WriteHeader(&tar.Header{Name: fmt.Sprint("./", i), Typeflag: tar.TypeReg}))
			}
		}),
	} {
		if err := skimmed(t, Config{MaxFiles: 20_000}, archive); name == "too many" != (err != nil && strings.Contains(err.Error(), "files")) || !errors.Is(err, errTooLarge) {
			t.Errorf("%s: %v", name, err)
		}
		tree, _ := send(t, Config{Dir: t.TempDir(), MaxFiles: 20_000})
		if _, err := tree.Mirror(context.Background(), archive, ""); !errors.Is(err, errTooLarge) {
			t.Errorf("%s, as what came back: %v", name, err)
		}
	}
	// What is refused unseen must be refused: up to 1 GiB anything goes.
	if err := skimmed(t, Config{}, announce(&tar.Header{Name: "./x", Typeflag: tar.TypeReg, Size: 1<<30 - 2048})); err != nil {
		t.Errorf("1 GiB: %v", err)
	}
	for _, garbage := range [][]byte{nil, []byte("no gzip"), bytes.Repeat([]byte{0}, 4096)} {
		if err := skimmed(t, Config{MaxFiles: 1}, bytes.NewReader(garbage)); err != nil {
			t.Errorf("%.8q is judged before it is read: %v", garbage, err)
		}
	}
}

// The stream itself is held to the ratio, whatever its heads say.
func TestRatio(t *testing.T) {
	tree, _ := send(t, Config{Dir: t.TempDir()})
	m := newMirror(context.Background(), tree, "")
	for _, tt := range []struct{ size, want int64 }{{0, anyRatio}, {8 << 20, anyRatio}, {20 << 20, 2000 << 20}, {1 << 40, 2*m.tree.config.MaxBytes + 2048*500_000}} {
		if got := m.most(tt.size); got != tt.want {
			t.Errorf("%d bytes may become %d, want %d", tt.size, got, tt.want)
		}
	}
}

// The skimmer ends whatever its input is, and announces no less than it passes over.
func FuzzSkimmer(f *testing.F) {
	head := func(kind, size string) string {
		return strings.Repeat("x", 124) + size + strings.Repeat("0", 20) + kind + strings.Repeat("\x00", 355)
	}
	f.Add([]byte(strings.Repeat(head("0", "00000000000\x00"), 6)))
	f.Add([]byte(head("0", "\x80\x00\x00\x00\x7f\xff\xff\xff\xff\xff\xff\xff")))
	f.Add([]byte(head("x", "00000000012\x00") + "10 size=0\n" + strings.Repeat("\x00", 502) + head("0", "00000000000\x00")))
	f.Fuzz(func(t *testing.T, text []byte) {
		const most = 1 << 20
		s := skimmer{r: bufio.NewReader(bytes.NewReader(text)), left: most}
		for steps := 0; ; steps++ {
			if _, ok := s.next(); !ok {
				break
			}
			if steps > len(text)/blockSize || s.left > most-int64(steps+1)*blockSize {
				t.Fatalf("%d steps in %d bytes, %d left", steps, len(text), s.left)
			}
		}
	})
}

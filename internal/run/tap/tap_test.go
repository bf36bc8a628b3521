package tap

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func file(t *testing.T) *os.File {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(t.TempDir(), "f"), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func content(t *testing.T, f *os.File) string {
	t.Helper()
	b, err := os.ReadFile(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestTap(t *testing.T) {
	out, errs := file(t), file(t)
	var mu sync.Mutex
	var heard [2]strings.Builder
	tap, err := New(out, errs, func(isErr bool, data []byte) {
		mu.Lock()
		defer mu.Unlock()
		heard[map[bool]int{false: 0, true: 1}[isErr]].Write(data)
	})
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("x", 1<<20)
	for _, w := range []struct {
		f    *os.File
		text string
	}{{tap.Stdout, "out" + long}, {tap.Stderr, "err"}} {
		if _, err := io.WriteString(w.f, w.text); err != nil {
			t.Fatal(err)
		}
	}
	if err := tap.Close(); err != nil {
		t.Fatal(err)
	}
	if content(t, out) != "out"+long || heard[0].String() != "out"+long || content(t, errs) != "err" || heard[1].String() != "err" {
		t.Error("something was lost on the way")
	}
}

// Two outputs that are one file stay in order.
func TestOneFile(t *testing.T) {
	out := file(t)
	tap, err := New(out, out, func(isErr bool, _ []byte) {
		if isErr {
			t.Error("heard as the standard error")
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		_, _ = io.WriteString(tap.Stdout, "o")
		_, _ = io.WriteString(tap.Stderr, "e")
	}
	if err := tap.Close(); err != nil || content(t, out) != strings.Repeat("oe", 100) {
		t.Errorf("%q, %v", content(t, out), err)
	}
}

// A reader that went away is told to the program.
func TestReaderGone(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	defer w.Close()
	tap, err := New(w, nil, func(bool, []byte) {})
	if err != nil {
		t.Fatal(err)
	}
	defer tap.Close()
	for range 1000 {
		if _, err := tap.Stdout.Write(make([]byte, 1<<10)); err != nil {
			return
		}
	}
	t.Error("the program writes on to nobody")
}

package event

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func openForTest(t *testing.T, path string) *os.File {
	t.Helper()
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() }) // a second Close, where the test closed it
	return f
}

func readForTest(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// A log is rotated by rename again and again while many write to it: every
// line is whole in one of the files, in order, and none is missing.
func TestRotation(t *testing.T) {
	dir := t.TempDir()
	live := filepath.Join(dir, "e.jsonl")
	w := &Writer{W: openForTest(t, live)}
	const writers, each, turns = 8, 300, 20
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for range each {
				if err := w.Emit(Event{Body: asked("h")}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for i := range turns {
		if err := os.Rename(live, filepath.Join(dir, string(rune('a'+i)))); err != nil {
			t.Fatal(err)
		}
		old, err := w.Reopen(openForTest(t, live))
		if err != nil {
			t.Fatal(err)
		}
		if err := old.(*os.File).Close(); err != nil {
			t.Fatal(err)
		}
	}
	wg.Wait()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	var all []byte
	for i := range turns {
		all = append(all, readForTest(t, filepath.Join(dir, string(rune('a'+i))))...)
	}
	all = append(all, readForTest(t, live)...)
	wantNoGaps(t, numbers(t, all), writers*each)
	if _, err := w.Reopen(io.Discard); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

func TestReopenAtRest(t *testing.T) {
	var a, b bytes.Buffer
	w := &Writer{}
	if old, err := w.Reopen(&a); old != nil || err != nil {
		t.Fatalf("%v, %v", old, err)
	}
	if err := w.Emit(Event{Body: asked("")}); err != nil {
		t.Fatal(err)
	}
	if old, err := w.Reopen(&b); old != io.Writer(&a) || err != nil {
		t.Fatalf("%v, %v", old, err)
	}
	if err := w.Emit(Event{Body: asked("")}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Reopen(nil); err == nil {
		t.Error("it reopened nothing")
	}
	if got := append(numbers(t, a.Bytes()), numbers(t, b.Bytes())...); len(got) != 2 || got[1] != 2 {
		t.Errorf("numbers %v", got)
	}
}

func TestReopenWhileStalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		g := &gateWriter{}
		g.next = func(p []byte) (int, error) { <-hold; return len(p), nil }
		w := &Writer{W: g, Timeout: time.Second}
		first := make(chan error, 1)
		go func() { first <- w.Emit(Event{Body: asked("")}) }()
		synctest.Wait()
		var b bytes.Buffer
		start := time.Now()
		if _, err := w.Reopen(&b); !errors.Is(err, ErrStalled) || time.Since(start) > time.Second {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		if err := <-first; !errors.Is(err, ErrStalled) {
			t.Error(err)
		}
		close(hold)
		synctest.Wait()
		if old, err := w.Reopen(&b); old != io.Writer(g) || err != nil {
			t.Errorf("once it moves again: %v, %v", old, err)
		}
		if err := w.Emit(Event{Body: asked("")}); err != nil {
			t.Error(err)
		}
		if got := append(numbers(t, g.Bytes()), numbers(t, b.Bytes())...); len(got) != 2 || got[1] != 2 {
			t.Errorf("numbers %v", got)
		}
	})
}

// A line that is cut where nothing can be taken back goes on in the next file.
func TestReopenAfterACutLine(t *testing.T) {
	for _, heals := range []bool{false, true} {
		full := errors.New("no space")
		g := &gateWriter{}
		g.next = func(p []byte) (int, error) { return min(10, len(p)), full }
		w := &Writer{W: g}
		if err := w.Emit(Event{Body: asked("cut")}); !errors.Is(err, full) {
			t.Fatal(err)
		}
		if g.next = func([]byte) (int, error) { return 0, full }; heals {
			g.next = nil
		}
		var b bytes.Buffer
		if _, err := w.Reopen(&b); err != nil {
			t.Fatal(err)
		}
		if err := w.Emit(Event{Body: asked("whole")}); err != nil {
			t.Fatal(err)
		}
		lines := b.Bytes()
		if heals {
			lines = append(bytes.Clone(g.Bytes()), lines...)
		}
		wantNoGaps(t, numbers(t, lines), 2)
	}
}

// Half a line at the end of a file, of a process that died, is not continued.
func TestHalfALineOfAnother(t *testing.T) {
	path := filepath.Join(t.TempDir(), "e.jsonl")
	if err := os.WriteFile(path, []byte(`{"seq":1}`+"\n"+`{"seq":2,"ho`), 0o600); err != nil {
		t.Fatal(err)
	}
	w := &Writer{W: openForTest(t, path)}
	for range 2 {
		if err := w.Emit(Event{Body: asked("")}); err != nil {
			t.Fatal(err)
		}
	}
	lines := bytes.SplitAfter(readForTest(t, path), []byte{'\n'})
	if len(lines) != 5 || string(lines[1]) != `{"seq":2,"ho`+"\n" {
		t.Fatalf("%q", lines)
	}
	wantNoGaps(t, numbers(t, bytes.Join(lines[2:], nil)), 2)
}

// removeHalf cuts exactly the half line that was written, and nothing else.
func TestTakeBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "e.jsonl")
	for _, tt := range []struct{ have, half, want string }{
		{"a\nbb", "bb", "a\n"},
		{"bb", "bb", ""},
		{"a\nbb", "cc", "a\nbb"},
		{"b", "bb", "b"},
		{"a\nbbc\n", "bb", "a\nbbc\n"}, // somebody else wrote behind it
		{"a\n", "", "a\n"},
	} {
		if err := os.WriteFile(path, []byte(tt.have), 0o600); err != nil {
			t.Fatal(err)
		}
		n := removeHalf(openForTest(t, path), []byte(tt.half))
		if got := string(readForTest(t, path)); got != tt.want || n != len(tt.have)-len(tt.want) {
			t.Errorf("%q without %q is %q, %d bytes less", tt.have, tt.half, got, n)
		}
	}
	if removeHalf(&bytes.Buffer{}, []byte("x")) != 0 || endsInHalf(&bytes.Buffer{}) {
		t.Error("a buffer is no file")
	}
}

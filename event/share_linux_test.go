package event

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
)

func TestQuota(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out, log bytes.Buffer
		w := &Writer{W: &out}
		loud, loudOver := w.Share(10_000, 50_000, 0, slog.New(slog.NewTextHandler(&log, nil)))
		once, onceOver := w.Share(0, 0, 5000, nil)
		free, freeOver := w.Share(0, 0, 0, nil)
		flood := func(s Sink) (n int) {
			for range 1000 {
				before := out.Len()
				switch err := s.Emit(Event{Body: asked(strings.Repeat("x", 200))}); {
				case err == nil:
					n += out.Len() - before
				case !errors.Is(err, ErrQuota):
					t.Fatal(err)
				}
			}
			return n
		}
		if n := flood(loud); n < 50_000 || n > 51_000 || loudOver() != overRate {
			t.Errorf("%d bytes of a burst of 50,000: %q", n, loudOver())
		}
		if n := flood(once); n < 5000 || n > 6000 || onceOver() != overTotal {
			t.Errorf("%d bytes of 5,000: %q", n, onceOver())
		}
		if n := flood(free); n < 200_000 || freeOver() != "" {
			t.Errorf("%d bytes of a share without a quota: %q", n, freeOver())
		}
		time.Sleep(2 * time.Second)
		if n := flood(loud); n < 20_000 || n > 21_000 {
			t.Errorf("%d bytes came back in 2 s at 10,000 a second", n)
		}
		if n := strings.Count(log.String(), "level=ERROR"); n != 2 || strings.Count(log.String(), "level=WARN") != 1 {
			t.Errorf("the log says %s", &log)
		}
		old, err := w.Reopen(&out)
		if old == nil || err != nil {
			t.Fatal(err)
		}
		if n := flood(once); n < 5000 || n > 6000 {
			t.Errorf("%d bytes of 5,000 in a new file", n)
		}
		if err := w.Close(); err != nil {
			t.Errorf("what a quota refuses is no loss: %v", err)
		}
		wantNoGaps(t, numbers(t, out.Bytes()), bytes.Count(out.Bytes(), []byte("\n")))
	})
}

// TestFloodOnASmallDisk fills a disk from one share. The other one, and what has no
// share, still find room; and the flood goes on when there is room again.
func TestFloodOnASmallDisk(t *testing.T) {
	if !inOwnMounts(t) {
		return
	}
	dir := t.TempDir()
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=8m"); err != nil {
		t.Fatal(err)
	}
	defer unix.Unmount(dir, unix.MNT_DETACH) //nolint:errcheck // the namespace goes anyway
	ballast, path := filepath.Join(dir, "ballast"), filepath.Join(dir, "e.jsonl")
	if err := os.WriteFile(ballast, make([]byte, 4<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	w := &Writer{W: openForTest(t, path)}
	loud, loudOver := w.Share(0, 0, 0, nil)
	quiet, _ := w.Share(0, 0, 0, nil)
	line := Event{Body: asked(strings.Repeat("x", 1000))}
	var err error
	for i := 0; err == nil && i < 20_000; i++ {
		err = loud.Emit(line)
	}
	if !errors.Is(err, ErrQuota) || loudOver() != overLow {
		t.Fatalf("the flood ended with %v, %q", err, loudOver())
	}
	for i := range 200 { // its third of the eighth that was left
		if err := errors.Join(quiet.Emit(line), w.Emit(Event{Body: &PolicyLoaded{Name: fmt.Sprint(i)}})); err != nil {
			t.Fatalf("after the flood, the other's event %d: %v", i, err)
		}
		if loud.Emit(line) == nil {
			t.Fatal("the flood goes on")
		}
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(10 * time.Second); loud.Emit(line) != nil; {
		if time.Now().After(end) {
			t.Fatal("there is room again, and the share does not notice")
		}
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	data := readForTest(t, path)
	wantNoGaps(t, numbers(t, data), bytes.Count(data, []byte("\n")))
}

package event

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Many write at once, and the file changes all the time: every line is whole in one of
// the files, none is missing, and no file is far over its size.
func TestRotateUnderLoad(t *testing.T) {
	dir := t.TempDir()
	var paths []string
	open := func() *os.File {
		paths = append(paths, filepath.Join(dir, fmt.Sprint(len(paths))))
		return openForTest(t, paths[len(paths)-1])
	}
	w := &Writer{W: open()}
	const most, writers, each = 8 << 10, 8, 200
	w.Rotate(most, func(old io.Writer) (io.Writer, error) {
		return open(), old.(*os.File).Close()
	})
	var wg sync.WaitGroup
	for g := range writers {
		wg.Go(func() {
			for i := range each {
				if err := w.Emit(Event{Body: asked(fmt.Sprint(g, "-", i, strings.Repeat("x", 200)))}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	_ = w.W.(*os.File).Close()
	var all []byte
	for i, p := range paths {
		data := readForTest(t, p)
		if i < len(paths)-1 && (len(data) < most || len(data) > most+writers*1024) {
			t.Errorf("file %d has %d bytes", i, len(data))
		}
		all = append(all, data...)
	}
	if len(paths) < 20 {
		t.Errorf("%d files", len(paths))
	}
	wantNoGaps(t, numbers(t, all), writers*each)
}

// A rotation that fails loses nothing, and is tried again after a minute; one that has
// nothing to replace is not an error.
func TestRotateFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := openForTest(t, filepath.Join(t.TempDir(), "e"))
		defer f.Close()
		w := &Writer{W: f}
		asks, err := 0, errors.New("no directory")
		w.Rotate(1, func(io.Writer) (io.Writer, error) { asks++; return nil, err })
		for range 20 {
			if err := w.Emit(Event{Body: asked("a")}); err != nil {
				t.Error(err)
			}
		}
		if asks != 1 {
			t.Errorf("%d attempts in a moment", asks)
		}
		time.Sleep(rotateAgain)
		var next bytes.Buffer
		err = nil
		w.files.replace = func(io.Writer) (io.Writer, error) { asks++; return &next, nil }
		if err := w.Emit(Event{Body: asked("a")}); err != nil || asks != 2 || next.Len() == 0 {
			t.Errorf("%v, %d attempts, %d bytes", err, asks, next.Len())
		}
	})
}

// A file system hangs while the file is put away: events fail in time, and go on after.
func TestRotateHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := openForTest(t, filepath.Join(t.TempDir(), "e"))
		defer f.Close()
		if _, err := f.WriteString("\n"); err != nil {
			t.Fatal(err)
		}
		hold, next := make(chan struct{}), new(bytes.Buffer)
		w := &Writer{W: f, Timeout: time.Second}
		w.Rotate(1, func(io.Writer) (io.Writer, error) { <-hold; return next, nil })
		if err := w.Emit(Event{Body: asked("a")}); !errors.Is(err, ErrStalled) {
			t.Errorf("got %v", err)
		}
		close(hold)
		synctest.Wait()
		if err := w.Emit(Event{Body: asked("b")}); err != nil {
			t.Error(err)
		}
		wantNoGaps(t, numbers(t, next.Bytes()), 1)
	})
}

// Who asks for Reopen during a rotation gets the file that it has replaced, to close it,
// and not the one that the rotation has closed already.
func TestReopenDuringRotation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := openForTest(t, filepath.Join(t.TempDir(), "e"))
		defer f.Close()
		if _, err := f.WriteString("\n"); err != nil {
			t.Fatal(err)
		}
		hold, middle, last := make(chan struct{}), new(bytes.Buffer), new(bytes.Buffer)
		w := &Writer{W: f}
		w.Rotate(1, func(io.Writer) (io.Writer, error) { <-hold; return middle, nil })
		var wg sync.WaitGroup
		wg.Go(func() { _ = w.Emit(Event{Body: asked("a")}) })
		synctest.Wait()
		wg.Go(func() {
			if old, err := w.Reopen(last); err != nil || old != io.Writer(middle) {
				t.Errorf("%T %v", old, err)
			}
		})
		synctest.Wait()
		close(hold)
		wg.Wait()
		wantNoGaps(t, numbers(t, append(middle.Bytes(), last.Bytes()...)), 1)
	})
}

// slowDisk is a file whose Sync fails when told.
type slowDisk struct {
	gateWriter
	syncs int
	err   error
}

func (d *slowDisk) Sync() error { d.syncs++; return d.err }

// Sync makes durable what is not, and a disk that cannot is an outage until a line was
// written after that.
func TestSync(t *testing.T) {
	d := new(slowDisk)
	w := &Writer{W: d}
	if err := errors.Join(w.Sync(), w.Emit(Event{Body: asked("a")}), w.Sync(), w.Sync()); err != nil || d.syncs != 1 {
		t.Errorf("%v after %d syncs", err, d.syncs)
	}
	d.err = errors.New("I/O error")
	if err := errors.Join(w.Emit(Event{Body: asked("b")}), w.Failing()); err != nil {
		t.Error(err)
	}
	if err := w.Sync(); !errors.Is(err, d.err) || !errors.Is(w.Failing(), d.err) {
		t.Errorf("%v, %v", err, w.Failing())
	}
	if err := w.Unavailable(); err != nil || !strings.Contains(d.String(), `"type":"record.resumed"`) {
		t.Errorf("%v: %s", err, d.String())
	}
}

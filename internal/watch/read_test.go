package watch

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// Whatever writers in place do, nobody reads half a file.
func TestReadFileIsWhole(t *testing.T) {
	t.Parallel()
	t.Run("now and then", func(t *testing.T) { t.Parallel(); whole(t, 4000, 50*time.Millisecond, 30) })
	t.Run("all the time", func(t *testing.T) { t.Parallel(); whole(t, 4<<20, 0, 5) })
}

// whole reads while another writes, that often.
func whole(t *testing.T, size int, rest time.Duration, reads int) {
	path := filepath.Join(t.TempDir(), "policy.yaml")
	texts := []string{strings.Repeat("a", size) + "\n", strings.Repeat("b", 2*size) + "\n"}
	write(t, path, texts[0])
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
			if err != nil {
				t.Error(err)
				return
			}
			text := texts[i%2]
			_, _ = f.WriteString(text[:len(text)/2])
			_, _ = f.WriteString(text[len(text)/2:])
			_ = f.Close()
			pause(rest)
		}
	})
	for range reads {
		data, err := ReadFile(path)
		if err != nil {
			continue // it says so rather than guess
		}
		if s := string(data); s != texts[0] && s != texts[1] {
			t.Fatalf("%d bytes were read", len(s))
		}
	}
	cancel()
	wg.Wait()
}

func TestReadFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "policy.yaml")
	if _, err := ReadFile(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	write(t, path, oldText)
	ancient := time.Now().Add(-time.Hour)
	must(t, os.Chtimes(path, ancient, ancient))
	begin := time.Now()
	if data, err := ReadFile(path); err != nil || string(data) != oldText {
		t.Errorf("got %q, %v", data, err)
	}
	if took := time.Since(begin); took > freshTime {
		t.Errorf("an old file took %v", took)
	}
	// A clock that was set back: the file is from the future, and that is all.
	future := time.Now().Add(time.Hour)
	must(t, os.Chtimes(path, future, future))
	if data, err := ReadFile(path); err != nil || string(data) != oldText {
		t.Errorf("got %q, %v", data, err)
	}
	// An empty file is empty, once it has been for a moment.
	write(t, path, "")
	if data, err := ReadFile(path); err != nil || len(data) != 0 {
		t.Errorf("got %q, %v", data, err)
	}
	if data, err := ReadFile(os.DevNull); err != nil || len(data) != 0 {
		t.Errorf("got %q, %v", data, err)
	}
}

// A file that is emptied and filled a moment later is never read empty.
func TestReadFileWaitsForEmptied(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "policy.yaml")
	write(t, path, "")
	var wg sync.WaitGroup
	wg.Go(func() {
		pause(60 * time.Millisecond)
		write(t, path, newText)
	})
	if data, err := ReadFile(path); err != nil || string(data) != newText {
		t.Errorf("got %q, %v", data, err)
	}
	wg.Wait()
}

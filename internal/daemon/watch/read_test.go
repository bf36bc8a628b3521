package watch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Whatever writers in place do, nobody reads half a file.
func TestReadFileIsWhole(t *testing.T) {
	t.Parallel()
	for name, rest := range map[string]time.Duration{"now and then": 50 * time.Millisecond, "all the time": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "policy.yaml")
			texts := []string{strings.Repeat("a", 1000) + "\n", strings.Repeat("b", 3000) + "\n"}
			write(t, path, texts[0])
			ctx, cancel := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			wg.Go(func() {
				for i := 0; ctx.Err() == nil; i++ {
					if err := os.WriteFile(path, []byte(texts[i%2]), 0o600); err != nil {
						t.Error(err)
						return
					}
					pause(rest)
				}
			})
			for range 6 {
				data, err := ReadFile(path)
				if err != nil {
					continue // it says so rather than guess
				}
				if s := string(data); s != texts[0] && s != texts[1] {
					t.Errorf("%d bytes were read", len(s))
				}
			}
			cancel()
			wg.Wait()
		})
	}
}

func TestReadOnce(t *testing.T) {
	t.Parallel()
	ancient := time.Now().Add(-time.Hour)
	for _, tt := range []struct {
		name    string
		between func(t *testing.T, path string)
		want    int
	}{
		{"nothing", func(*testing.T, string) {}, steady},
		{"written in place", func(t *testing.T, path string) { write(t, path, newText) }, torn},
		{"written in place, the same size", func(t *testing.T, path string) { write(t, path, strings.ToUpper(oldText)) }, torn},
		{"emptied", func(t *testing.T, path string) { must(t, os.Truncate(path, 0)) }, torn},
		{"replaced", func(t *testing.T, path string) {
			write(t, path+".tmp", newText)
			must(t, os.Rename(path+".tmp", path))
		}, torn},
		{"deleted", func(t *testing.T, path string) { must(t, os.Remove(path)) }, torn},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "policy.yaml")
			write(t, path, oldText)
			must(t, os.Chtimes(path, ancient, ancient))
			data, how, err := readOnce(path, func() { tt.between(t, path) })
			if err != nil || string(data) != oldText || how != tt.want {
				t.Errorf("got %q, %d, %v; want %d", data, how, err, tt.want)
			}
		})
	}
}

// What was written just now is not believed at once; what was renamed is.
func TestReadOnceNew(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "policy.yaml")
	write(t, path, oldText)
	if _, how, err := readOnce(path, nil); how == steady || err != nil {
		t.Errorf("written just now: %d, %v", how, err)
	}
	pause(restTime) // the kernel's own clock ticks in between
	must(t, os.Rename(path, path+".2"))
	if _, how, err := readOnce(path+".2", nil); how != steady || err != nil {
		t.Errorf("renamed: %d, %v", how, err)
	}
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
	if took := time.Since(begin); took > patienceTime {
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

// What is no file of ours is not read into memory, however it grows.
func TestReadFileIsBounded(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log")
	write(t, path, "")
	must(t, os.Truncate(path, maxReadBytes+1))
	if _, err := ReadFile(path); err == nil || !strings.Contains(err.Error(), "128 MiB") {
		t.Errorf("got %v", err)
	}
}

// A file that was put in its place by a rename is whole, however new it is, and
// however often that happens.
func TestReadFileUnderRenames(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "policy.yaml")
	write(t, path, oldText)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			err := os.WriteFile(path+".tmp", []byte([]string{oldText, newText}[i%2]), 0o600)
			if err == nil {
				err = os.Rename(path+".tmp", path)
			}
			if err != nil {
				t.Error(err)
				return
			}
			pause(2 * time.Millisecond)
		}
	})
	good := 0
	for range 10 {
		data, err := ReadFile(path)
		if err != nil {
			continue
		}
		if good++; string(data) != oldText && string(data) != newText {
			t.Errorf("got %q", data)
		}
	}
	cancel()
	wg.Wait()
	if good < 5 {
		t.Errorf("only %d of 10 reads came through", good)
	}
}

// A file that is emptied and filled a moment later is never read empty.
func TestReadFileWaitsForEmptied(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "policy.yaml")
	write(t, path, "")
	var wg sync.WaitGroup
	wg.Go(func() {
		pause(400 * time.Millisecond)
		if err := os.WriteFile(path, []byte(newText), 0o600); err != nil {
			t.Error(err)
		}
	})
	if data, err := ReadFile(path); err != nil || string(data) != newText {
		t.Errorf("got %q, %v", data, err)
	}
	wg.Wait()
}

// Threat: a pipe lies where the policy was, and keeps its reader for ever. It is
// no empty policy either.
func TestReadFileWaitsForNoWriter(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "pipe")
	must(t, syscall.Mkfifo(path, 0o600))
	if data, err := ReadFile(path); err == nil || !strings.Contains(err.Error(), "nobody writes") {
		t.Errorf("got %q, %v", data, err)
	}
	w, err := os.OpenFile(path, os.O_RDWR, 0)
	must(t, err)
	defer w.Close()
	if data, err := ReadFile(path); !errors.Is(err, os.ErrDeadlineExceeded) { // one who is silent
		t.Errorf("got %q, %v", data, err)
	}
	if data, err := ReadFile("/dev/null"); err != nil || len(data) > 0 {
		t.Errorf("/dev/null: %q, %v", data, err)
	}
	r, w2, err := os.Pipe()
	must(t, err)
	defer r.Close()
	_, err = w2.WriteString("allow: []\n")
	must(t, err)
	must(t, w2.Close())
	if data, err := ReadFile(fmt.Sprintf("/dev/fd/%d", r.Fd())); err != nil || string(data) != "allow: []\n" {
		t.Errorf("a shell's <(...): %q, %v", data, err)
	}
}

// Sum tells a file that says the same from one that does not.
func TestSum(t *testing.T) {
	name := filepath.Join(t.TempDir(), "list")
	write(t, name, "a\n")
	one, err := Sum(name)
	must(t, err)
	write(t, name, "a\n")
	if same, err := Sum(name); err != nil || same != one {
		t.Errorf("the same text has another sum: %v", err)
	}
	write(t, name, "b\n")
	if other, err := Sum(name); err != nil || other == one {
		t.Errorf("another text has the same sum: %v", err)
	}
	if _, err := Sum(filepath.Dir(name)); err == nil {
		t.Error("a directory has a sum")
	}
}

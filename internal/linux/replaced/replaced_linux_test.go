package replaced

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Names by themselves, without a mountinfo file: before inotify is there and after.
func TestWatch(t *testing.T) {
	for _, tt := range []struct {
		name   string
		after  time.Duration
		within time.Duration
		change func(dir, file string) error
	}{
		{"early", 0, 2 * time.Second, func(_, file string) error { return os.Rename(file, file+".1") }},
		{"late", notifyAfter + 200*time.Millisecond, 2 * time.Second, func(_, file string) error { return os.Remove(file) }},
		{"late, a directory above", notifyAfter + 200*time.Millisecond, 2 * time.Second, func(dir, _ string) error { return os.Rename(dir, dir+".1") }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "a")
			file, link := filepath.Join(dir, "b", "file"), filepath.Join(dir, "b", "link")
			must(t, os.MkdirAll(filepath.Dir(file), 0o755))
			must(t, os.WriteFile(file, []byte("old"), 0o600))
			must(t, os.Symlink("file", link))
			w, err := Open([]string{file, link})
			must(t, err)
			defer w.Close()
			ctx, stop := context.WithCancel(t.Context())
			told, ended := make(chan Change, 10), make(chan struct{})
			go func() { defer close(ended); w.Run(ctx, nil, func(c Change) { told <- c }) }()
			<-time.After(tt.after) // the two ways to notice are what is tested
			must(t, os.WriteFile(filepath.Join(dir, "b", "other"), nil, 0o600))
			must(t, os.WriteFile(file, []byte("new"), 0o600)) // in place: no replacement
			began := time.Now()
			must(t, tt.change(dir, file))
			select {
			case c := <-told:
				if took := time.Since(began); took > tt.within {
					t.Errorf("it took %v", took)
				}
				if was, now := c.Digests(); c.Path != file || !c.Exposed || was == "" || now != "" {
					t.Errorf("told %+v: %q, %q", c, was, now)
				}
			case <-time.After(4 * time.Second): // less than the watch looks around without notice
				t.Error("not noticed")
			}
			stop()
			<-ended
		})
	}
}

// What happens after the last look is found by Check.
func TestCheck(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o600))
	w, err := Open([]string{file})
	must(t, err)
	defer w.Close()
	var told []Change
	look := func() int { w.Check(func(c Change) { told = append(told, c) }); return len(told) }
	if look() != 0 {
		t.Errorf("nothing happened: %+v", told)
	}
	must(t, os.Remove(file))
	must(t, os.WriteFile(file, nil, 0o600)) // most likely with the old inode number, were it free
	if look() != 1 {
		t.Errorf("told %+v", told)
	}
	if look() != 1 {
		t.Errorf("told twice: %+v", told)
	}
	if _, err := Open([]string{file, file + ".none"}); err == nil {
		t.Error("a missing file is no error")
	}
}

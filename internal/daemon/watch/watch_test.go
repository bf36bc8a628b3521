package watch

import (
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	oldText = "allow:\n  - old.example.com\n"
	newText = "allow:\n  - new.example.com\ndeny:\n  - evil.example.com\n"
)

// TestMain lets eight tests run at a time: they wait, and compute next to nothing.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// watched is a watcher at work; its reader reads what a daemon would.
type watched struct {
	t     *testing.T
	path  string
	calls chan string // what the file held at each report; "-" for none
	mu    sync.Mutex
	seen  []string
}

// start watches path, and returns once the watch stands.
func start(t *testing.T, notified bool, path string, more ...string) *watched {
	t.Helper()
	w := &watched{t: t, path: path, calls: make(chan string, 10000)}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	watcher := Watcher{Paths: append([]string{path}, more...), Changed: w.changed}
	if !notified {
		watcher.newSource = func() (source, error) { return nil, errors.New("none today") }
	}
	go func() { done <- watcher.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	w.next(30 * time.Second) // the report of the start
	return w
}

func (w *watched) changed() {
	text := "-"
	if data, err := ReadFile(w.path); err == nil {
		text = string(data)
	}
	w.mu.Lock()
	w.seen = append(w.seen, text)
	w.mu.Unlock()
	w.calls <- text
}

// next waits for a report.
func (w *watched) next(within time.Duration) string {
	w.t.Helper()
	select {
	case text := <-w.calls:
		return text
	case <-time.After(within):
		w.t.Fatalf("no report within %v", within)
		return ""
	}
}

// until waits until a report finds want.
func (w *watched) until(want string, within time.Duration) {
	w.t.Helper()
	end := time.After(within)
	for {
		select {
		case text := <-w.calls:
			if text == want {
				return
			}
		case <-end:
			w.t.Fatalf("nobody reported %q within %v; reports: %q", want, within, w.reports())
		}
	}
}

func (w *watched) reports() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.seen)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func pause(d time.Duration) { <-time.After(d) }

// watchStalls measures how late timers are on this machine, until the function
// that it returns is called. That reports for how long everything between a
// change and its report, a dozen timers and reads, may have been kept waiting.
func watchStalls() func() time.Duration {
	const tick, steps = 10 * time.Millisecond, 12
	var worst time.Duration
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for last := time.Now(); ; {
			select {
			case <-stop:
				return
			case <-time.After(tick):
			}
			now := time.Now()
			worst, last = max(worst, now.Sub(last)-tick), now
		}
	}()
	return func() time.Duration {
		close(stop)
		<-stopped
		return steps * worst
	}
}

// slowly writes text in pieces, with pauses that a settling watch must not take
// for the end.
func slowly(t *testing.T, path, text string, flags int) {
	t.Helper()
	f, err := os.OpenFile(path, flags|os.O_WRONLY, 0o600)
	must(t, err)
	defer f.Close()
	for _, piece := range strings.SplitAfter(text, "\n") {
		_, err := f.WriteString(piece)
		must(t, err)
		pause(150 * time.Millisecond)
	}
}

// edits are the ways in which a file comes to hold newText. Each leaves the
// path readable at the end.
var edits = []struct {
	name string
	edit func(t *testing.T, path string)
}{
	{"in place", func(t *testing.T, path string) { write(t, path, newText) }},
	{"truncate, pause, write", func(t *testing.T, path string) {
		must(t, os.Truncate(path, 0))
		pause(400 * time.Millisecond)
		write(t, path, newText)
	}},
	{"rename over", func(t *testing.T, path string) {
		write(t, path+".tmp", newText)
		must(t, os.Rename(path+".tmp", path))
	}},
	{"backup and rename, as vim", func(t *testing.T, path string) {
		must(t, os.Rename(path, path+"~"))
		pause(150 * time.Millisecond)
		write(t, path, newText)
		must(t, os.Remove(path+"~"))
	}},
	{"delete and make again", func(t *testing.T, path string) {
		must(t, os.Remove(path))
		pause(400 * time.Millisecond)
		write(t, path, newText)
	}},
	{"a hard link put in its place", func(t *testing.T, path string) {
		write(t, path+".new", newText)
		must(t, os.Remove(path))
		must(t, os.Link(path+".new", path))
	}},
	{"a symbolic link put in its place", func(t *testing.T, path string) {
		write(t, path+".real", newText)
		must(t, os.Symlink(path+".real", path+".link"))
		must(t, os.Rename(path+".link", path))
	}},
	{"the directory swapped", func(t *testing.T, path string) {
		dir := filepath.Dir(path)
		must(t, os.Mkdir(dir+".new", 0o700))
		write(t, filepath.Join(dir+".new", filepath.Base(path)), newText)
		must(t, os.Rename(dir, dir+".old"))
		must(t, os.Rename(dir+".new", dir))
	}},
	{"the directory above swapped", func(t *testing.T, path string) {
		above := filepath.Dir(filepath.Dir(filepath.Dir(path)))
		must(t, os.MkdirAll(filepath.Join(above+".new", "gate", "conf"), 0o700))
		write(t, filepath.Join(above+".new", "gate", "conf", filepath.Base(path)), newText)
		must(t, os.Rename(above, above+".old"))
		must(t, os.Rename(above+".new", above))
	}},
	{"the same size", func(t *testing.T, path string) {
		write(t, path, strings.Replace(oldText, "old", "odd", 1))
		pause(20 * time.Millisecond)
		write(t, path, newText)
	}},
}

// styles are the same for a kernel that tells and for one that does not.
func styles(t *testing.T, f func(t *testing.T, notified bool)) {
	for _, notified := range []bool{true, false} {
		name := "notified"
		if !notified {
			name = "polled"
		}
		t.Run(name, func(t *testing.T) { t.Parallel(); f(t, notified) })
	}
}

func TestEdits(t *testing.T) {
	t.Parallel()
	for _, tt := range edits {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			styles(t, func(t *testing.T, notified bool) {
				path := filepath.Join(t.TempDir(), "etc", "gate", "conf", "policy.yaml")
				must(t, os.MkdirAll(filepath.Dir(path), 0o700))
				write(t, path, oldText)
				w := start(t, notified, path)
				tt.edit(t, path)
				changed, stalls := time.Now(), watchStalls()
				w.until(newText, 30*time.Second)
				if took, stalled := time.Since(changed), stalls(); took > 900*time.Millisecond+stalled { // see TestLatency
					t.Errorf("reported %v later, on a machine that stalls for %v", took, stalled)
				}
				for _, text := range w.reports() {
					if text != oldText && text != newText && text != strings.Replace(oldText, "old", "odd", 1) {
						t.Errorf("a report found %q", text)
					}
				}
				// And it still watches what is there now.
				write(t, path, oldText)
				w.until(oldText, 30*time.Second)
			})
		})
	}
}

// A writer that takes its time is waited for: half a policy is another policy.
func TestSlowWriters(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		edit func(t *testing.T, path string)
	}{
		{"over the old text", func(t *testing.T, path string) { slowly(t, path, newText, os.O_TRUNC) }},
		{"a new file", func(t *testing.T, path string) {
			must(t, os.Remove(path))
			slowly(t, path, newText, os.O_CREATE|os.O_EXCL)
		}},
		{"another file first", func(t *testing.T, path string) {
			slowly(t, path+".tmp", newText, os.O_CREATE)
			must(t, os.Rename(path+".tmp", path))
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if _, err := newEvents(); err != nil {
				t.Logf("nobody tells of writers here: %v", err)
				return
			}
			path := filepath.Join(t.TempDir(), "policy.yaml")
			write(t, path, oldText)
			w := start(t, true, path)
			tt.edit(t, path)
			w.until(newText, 30*time.Second)
			if got := w.reports(); !slices.Equal(got, []string{oldText, newText}) {
				t.Errorf("reports found %q", got)
			}
		})
	}
}

// Hundreds of changes a second become a few reports, each of a whole file, and
// the last change is among them.
func TestFlood(t *testing.T) {
	t.Parallel()
	styles(t, func(t *testing.T, notified bool) {
		path := filepath.Join(t.TempDir(), "policy.yaml")
		write(t, path, oldText)
		w := start(t, notified, path)
		begin := time.Now()
		for i := range 600 {
			if i%2 == 0 {
				write(t, path+".tmp", oldText)
				must(t, os.Rename(path+".tmp", path))
			} else {
				write(t, path, newText)
			}
			pause(2 * time.Millisecond)
		}
		write(t, path, "last\n")
		w.until("last\n", 30*time.Second)
		// However long the writes take here: between two reports the files rest, or
		// change for longer than that.
		most := int(time.Since(begin)/quietTime) + 2
		if n := len(w.reports()); n < 3 || n > most {
			t.Errorf("%d reports, want 3 to %d", n, most)
		}
		for _, text := range w.reports() {
			if text != oldText && text != newText && text != "last\n" && text != "-" {
				t.Errorf("a report found %q", text)
			}
		}
	})
}

// A log in the same directory wakes nobody.
func TestNeighbours(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "policy.yaml")
	write(t, path, oldText)
	w := start(t, true, path)
	for range 100 {
		write(t, filepath.Join(dir, "events.jsonl"), newText)
		must(t, os.Remove(filepath.Join(dir, "events.jsonl")))
	}
	write(t, path, newText)
	w.until(newText, 30*time.Second)
	if got := w.reports(); !slices.Equal(got, []string{oldText, newText}) {
		t.Errorf("reports found %q", got)
	}
}

func TestPermissions(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "policy.yaml")
	write(t, path, oldText)
	w := start(t, true, path)
	must(t, os.Chmod(path, 0o640)) // may be what was needed to read it
	w.next(5 * time.Second)
}

// A pipe that somebody passed is no file that changes; it is reported once, with
// the rest.
func TestIrregular(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "policy.yaml")
	write(t, path, oldText)
	w := start(t, true, path, os.DevNull, t.TempDir())
	write(t, path, newText)
	w.until(newText, 30*time.Second)
}

func TestNothingToWatch(t *testing.T) {
	if err := (&Watcher{Changed: func() {}}).Run(t.Context()); err == nil {
		t.Error("no files are no error")
	}
	if err := (&Watcher{Paths: []string{"x"}}).Run(t.Context()); err == nil {
		t.Error("nobody to tell is no error")
	}
}

// A change is in a reader's hands well within a second, on a kernel that tells
// and on one that does not.
func TestLatency(t *testing.T) {
	for _, tt := range []struct {
		notified bool
		most     time.Duration
	}{{true, 400 * time.Millisecond}, {false, 600 * time.Millisecond}} {
		path := filepath.Join(t.TempDir(), "policy.yaml")
		write(t, path, oldText)
		w := start(t, tt.notified, path)
		best := time.Hour
		stalls := watchStalls()
		for i := range 4 { // the best of a few: others use this machine, too
			text := []string{newText, oldText}[i%2]
			write(t, path, text)
			changed := time.Now()
			w.until(text, 30*time.Second)
			best = min(best, time.Since(changed))
		}
		if stalled := stalls(); best > tt.most+stalled {
			t.Errorf("notified %v: %v, on a machine that stalls for %v", tt.notified, best, stalled)
		}
		t.Logf("notified %v: %v", tt.notified, best)
	}
}

// Package watch reports when files have changed:
//
//	w := watch.Watcher{Paths: files, Changed: reload}
//	err := w.Run(ctx)
//
// It finds every kind of change: written in place, truncated and filled slowly,
// replaced by a rename, deleted and made again, or swapped behind symbolic links
// as Kubernetes does with a ConfigMap.
//
// A change is reported once the files have come to rest, so that no half-written
// file is read: the kernel reports when a writer has closed its file, and two
// scans some time apart must agree. Files that rest cost nothing. Where the kernel
// reports nothing (no inotify instance or watch left, a network file system),
// frequent scans take its place, and the log says so.
package watch

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"time"
)

// Watcher watches a few files. Set the fields before Run.
type Watcher struct {
	Paths []string
	// Changed is called from Run's goroutine, never twice at a time: once as soon as
	// the files are watched, so that no change is lost between the caller's first
	// read and the watch, and then after every change. It may be called without a
	// change: compare what was read. A file that vanished or was emptied is reported
	// after a longer while, since most come back at once.
	Changed func()
	Log     *slog.Logger // nil: silent

	newSource func() (source, error) // seam for tests
}

// Implementation constants. A change is reported within 200 ms if the kernel
// reports it, within 400 ms otherwise.
const (
	quietTime      = 100 * time.Millisecond // for which two scans must agree
	quietAlone     = 200 * time.Millisecond // without the kernel, which reports that a writer has finished
	doubtTime      = 2 * time.Second        // for a file that is gone, empty or still open for writing
	longestUnrest  = 500 * time.Millisecond // for files that change all the time
	burstTime      = 10 * time.Millisecond  // what happens within it is scanned once
	pollNotified   = 30 * time.Second       // safety net behind the kernel's events: a mount over a directory, say
	pollAlone      = 125 * time.Millisecond
	pollEach       = time.Millisecond // added to pollAlone for each file, so that 2,000 take no more of a processor than 20
	maxLinksInPath = 40               // as the kernel's own bound (ELOOP)
)

// Run watches until ctx ends, and returns nil then, after every goroutine it
// started has exited. An error means that there is nothing to watch.
func (w *Watcher) Run(ctx context.Context) error {
	paths, err := w.absolute()
	if err != nil {
		return err
	}
	src := w.source()
	defer src.close()
	l := scanner{paths: paths, src: src, log: w.log()}
	s := debouncer{alone: pollAlone + time.Duration(len(paths))*pollEach}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		case <-src.changes():
			if !rest(ctx, burstTime) {
				return nil
			}
		}
		seen, notified := l.scan()
		report, wait := s.step(time.Now(), seen, notified)
		if report {
			w.Changed()
		}
		timer.Reset(wait)
	}
}

// rest waits for d. It reports false if ctx has ended.
func rest(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

func (w *Watcher) absolute() ([]string, error) {
	if len(w.Paths) == 0 || w.Changed == nil {
		return nil, errors.New("watch: no paths, or no Changed")
	}
	out := make([]string, len(w.Paths))
	for i, p := range w.Paths {
		abs, err := filepath.Abs(p)
		if err != nil {
			return nil, err
		}
		out[i] = abs
	}
	return out, nil
}

// source asks the kernel for events. Without them frequent scans must do. That is
// not an error: a node runs out of inotify instances long before it runs out of
// anything else.
func (w *Watcher) source() source {
	open := newEvents
	if w.newSource != nil {
		open = w.newSource
	}
	src, err := open()
	if err != nil {
		return noEvents{err}
	}
	return src
}

func (w *Watcher) log() *slog.Logger {
	if w.Log != nil {
		return w.Log
	}
	return slog.New(slog.DiscardHandler)
}

// source reports that something has changed.
type source interface {
	// place watches these files, names and directories, and nothing else. The error
	// says why changes of one of them would not be reported.
	place(files []string, on way) error
	// writing reports whether the file, which has this last entry and so many names,
	// is known to be open for writing.
	writing(file string, last entry, links uint64) bool
	changes() <-chan struct{}
	close() // after every goroutine of the source has exited
}

// noEvents is a source that never reports anything, and why.
type noEvents struct{ why error }

func (n noEvents) place([]string, way) error        { return n.why }
func (noEvents) writing(string, entry, uint64) bool { return false }
func (noEvents) changes() <-chan struct{}           { return nil }
func (noEvents) close()                             {}

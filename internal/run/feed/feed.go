// Package feed hands lines to a slow reader, such as a terminal or a disk, without
// making the writer wait for it.
//
//	f := feed.New(os.Stderr, feed.Bounds{Queue: 1 << 20})
//	_, _ = io.WriteString(f, line) // returns at once
//	lost, err := f.Close()
package feed

import (
	"bytes"
	"io"
	"sync"
	"time"
)

// closeTimeout is how long Close waits for a reader that does not read.
const closeTimeout = 5 * time.Second

// Bounds is how much a feed takes, in bytes.
type Bounds struct {
	Queue int   // that waits for the reader. Zero: nothing is taken
	Total int64 // in all; once more is written, nothing is taken any more. Zero: no bound
}

// Feed is a writer of whole lines that never waits and never fails. What does not fit is
// dropped and counted. Safe for concurrent use.
//
// Threat: a program makes so many decisions, or the reader reads so slowly, that memory
// runs out or flows stand still -> the queue is bounded, and nobody waits for it.
// Left over: lines are lost then, which Close reports.
type Feed struct {
	to     io.Writer
	bounds Bounds

	mu     sync.Mutex
	more   *sync.Cond // of mu: there is something to do
	queue  []byte
	taken  int64
	lost   int64 // lines
	full   bool  // Total is reached
	closed bool
	err    error         // of the reader; nothing is written to it any more
	done   chan struct{} // closed when the last line is written
}

// New starts a feed to w. The caller closes it; w stays open.
func New(w io.Writer, b Bounds) *Feed {
	f := &Feed{to: w, bounds: b, done: make(chan struct{})}
	f.more = sync.NewCond(&f.mu)
	go f.run()
	return f
}

// Write implements io.Writer. It takes all of p, which is whole lines, or none of it,
// and reports success in either case.
func (f *Feed) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.bounds.Total > 0 && f.taken+int64(len(p)) > f.bounds.Total {
		f.full = true
	}
	if f.closed || f.full || f.err != nil || len(f.queue)+len(p) > f.bounds.Queue {
		f.lost += int64(bytes.Count(p, []byte{'\n'}))
		return len(p), nil
	}
	f.taken += int64(len(p))
	f.queue = append(f.queue, p...)
	f.more.Signal()
	return len(p), nil
}

// run writes what is queued until the feed is closed.
func (f *Feed) run() {
	defer close(f.done)
	f.mu.Lock()
	defer f.mu.Unlock()
	var spare []byte
	for {
		for len(f.queue) == 0 && !f.closed {
			f.more.Wait()
		}
		if len(f.queue) == 0 || f.err != nil {
			return
		}
		lines := f.queue
		f.queue = spare[:0]
		f.mu.Unlock()
		_, err := f.to.Write(lines)
		f.mu.Lock()
		spare = lines
		if err != nil {
			f.err = err
			f.lost += int64(bytes.Count(f.queue, []byte{'\n'}))
			return
		}
	}
}

// Close writes what is queued, and reports how many lines were dropped and what the
// reader's error was. It waits at most five seconds for a reader that does not read:
// what is queued is lost then.
func (f *Feed) Close() (lost int64, err error) {
	f.mu.Lock()
	f.closed = true
	f.more.Signal()
	f.mu.Unlock()
	late := time.NewTimer(closeTimeout)
	defer late.Stop()
	select {
	case <-f.done:
	case <-late.C:
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lost, f.err
}

package event

import (
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"
)

// Implementation constants of what a Writer says while it cannot write.
const (
	tellEvery  = time.Minute // between lines of the log about one outage
	probeEvery = time.Second // between attempts to write for their own sake
)

// outage is what is known about lines that could not be written. The zero outage is none.
// Writer.mu guards it, but for on and due.
type outage struct {
	on  atomic.Bool // the latest write failed
	due atomic.Bool // there is something to tell the log

	failed uint64 // events whose Emit reported an error, ever
	latest error  // of those errors

	err   error // of the latest write that failed
	since time.Time
	until time.Time // of the first write that succeeded; zero while on
	lost  uint64    // lines that were not written since
	owed  bool      // a record.resumed is to be written
	told  time.Time // when the log last heard that nothing can be written; zero: it has not
	tried time.Time // when Unavailable last tried
}

// reportedError is a failure that the Writer's own log has heard of.
type reportedError struct{ error }

// Unwrap reports the failure itself.
func (e reportedError) Unwrap() error { return e.error }

// prober is a [Sink] that knows whether it can record.
type prober interface {
	// Unavailable reports why the next event could not be recorded; nil: it is
	// expected to be. It is asked before every flow, and safe for concurrent use.
	Unavailable() error
}

// Unavailable reports why one of f could not record an event now, so that a client can be
// told no before it was told yes. Nil: they expect to record it, or do not know. It
// promises nothing: see [OnRecord]. Safe for concurrent use.
func (f Fanout) Unavailable() error {
	for _, s := range f {
		p, ok := s.(prober)
		if !ok {
			continue
		}
		if err := p.Unavailable(); err != nil {
			return err
		}
	}
	return nil
}

// Unavailable reports the error of the latest write, if that failed. Once a second it
// tries again first, by writing a record.resumed, so that recovery is noticed without
// an event to record. It may then take as long as a write.
func (w *Writer) Unavailable() error {
	if !w.outage.on.Load() {
		w.tell() // a late write may have succeeded since
		return nil
	}
	err := w.probe(time.Now())
	w.tell()
	return err
}

// Failing is Unavailable without the attempt: it returns at once.
func (w *Writer) Failing() error {
	if !w.outage.on.Load() {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.outage.err
}

func (w *Writer) probe(now time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	o := &w.outage
	if !o.on.Load() || now.Sub(o.tried) < probeEvery || w.group.stalled || w.closed {
		return o.failure()
	}
	o.tried = now
	b, err := w.waitForRoom()
	if err != nil {
		return o.failure()
	}
	w.resume(b, &Event{}, now)
	w.startCommit()
	for !b.done {
		w.changed.Wait()
	}
	w.release(b)
	return o.failure()
}

// failure is the error of the latest write; nil: it succeeded. Writer.mu is held.
func (o *outage) failure() error {
	if !o.on.Load() {
		return nil
	}
	return o.err
}

// broke notes that n lines were not written. w.mu is held.
func (w *Writer) broke(err error, n uint64) {
	o, now := &w.outage, time.Now()
	if !o.owed {
		o.since, o.lost, o.owed = now, 0, true
	}
	o.on.Store(true)
	o.err, o.until = err, time.Time{}
	o.lost += n
	if now.Sub(o.told) >= tellEvery {
		o.due.Store(true)
	}
}

// works notes that b was written, whole. w.mu is held.
func (w *Writer) works(b *batch) {
	o := &w.outage
	if !o.owed {
		return
	}
	if o.on.Swap(false) {
		o.until = time.Now()
		if !o.told.IsZero() {
			o.due.Store(true)
		}
	}
	if b.resumes {
		o.owed = false
	}
}

// resume begins b with the line that one is owed, if any, in the words of e, which
// follows it. w.mu is held.
func (w *Writer) resume(b *batch, e *Event, now time.Time) {
	o := &w.outage
	if !o.owed || len(b.buf) > 0 || w.group.writing != nil && w.group.writing.resumes {
		return
	}
	end := now
	if !o.until.IsZero() {
		end = o.until
	}
	b.resumes = true
	w.seq++
	b.buf = appendLine(b.buf, &Event{
		Time: now, Seq: w.seq, Session: e.Session, Isolation: e.Isolation, origin: w.origin,
		Body: &recordResumed{Lost: o.lost, Duration: end.Sub(o.since), Error: o.err.Error()},
	})
}

// tell gives the log what it is to hear. It is called without w.mu: a log may block.
func (w *Writer) tell() {
	if w.Log == nil || !w.outage.due.Load() {
		return
	}
	w.mu.Lock()
	if !w.outage.due.Swap(false) {
		w.mu.Unlock()
		return
	}
	o := &w.outage
	failing, err := o.on.Load(), o.err
	lost := slog.Uint64("lost", o.lost)
	since := slog.Duration("for", o.lasted().Round(time.Millisecond))
	if failing {
		o.told = time.Now()
	}
	w.mu.Unlock()
	if failing {
		w.Log.Error("events cannot be recorded: everything is denied until they can be", "err", err, lost, since)
		return
	}
	w.Log.Warn("events are recorded again", lost, since)
}

// lasted is how long nothing can be written, or could not be. Writer.mu is held.
func (o *outage) lasted() time.Duration {
	if o.until.IsZero() {
		return time.Since(o.since)
	}
	return o.until.Sub(o.since)
}

// reported marks err as one that the log of w hears of. w.mu is held.
func (w *Writer) reported(err error) error {
	if w.Log == nil {
		return err
	}
	return reportedError{err}
}

// Unavailable reports whether the share is used up, or its Writer cannot write.
func (s *share) Unavailable() error {
	if s.out.Load() {
		if why := s.exhausted(); why != "" {
			return fmt.Errorf("%w: %s", ErrQuota, why)
		}
	}
	return s.w.Unavailable()
}

package event

import (
	"crypto/rand"
	"errors"
	"strings"
	"sync"
	"time"
)

// EmitBatch emits many events with one write, as [Fanout.EmitBatch] says.
func (w *Writer) EmitBatch(batch []Event) { w.emitBatch(batch, nil) }

// emit writes e on account of s; nil: on nobody's.
func (w *Writer) emit(e Event, s *share) error {
	defer w.tell()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begin()
	at, err := w.put(&e, s, time.Now())
	if err != nil {
		return err
	}
	return w.settle(at, s)
}

// begin makes what is made with the first event. w.mu is held.
func (w *Writer) begin() {
	if w.changed == nil {
		w.changed = sync.NewCond(&w.mu)
		if w.Resource != nil {
			w.origin = newOrigin(strings.ToLower(rand.Text()[:bootBytes]), w.Resource, maxStringBytes)
		}
	}
}

// place is where a line stands that waits to be written.
type place struct {
	in    *batch // nil: it does not wait
	bytes int
	end   int // in the batch's buffer
}

// atOnce bounds how many lines are put before their end is waited for.
const atOnce = 64

// emitBatch writes batch on account of s; nil: on nobody's.
func (w *Writer) emitBatch(batch []Event, s *share) {
	now := time.Now()
	defer w.tell()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begin()
	for len(batch) > 0 {
		n := min(len(batch), atOnce)
		var at [atOnce]place
		for i := range batch[:n] {
			if e := &batch[i]; !e.Settled {
				at[i], e.Err = w.put(e, s, now)
			}
		}
		for i := range batch[:n] {
			if at[i].in != nil {
				batch[i].Err = w.settle(at[i], s)
			}
		}
		batch = batch[n:]
	}
}

// put adds the line of e to the next write. w.mu is held.
func (w *Writer) put(e *Event, s *share, now time.Time) (place, error) {
	if s != nil && !s.room(now) {
		return place{}, ErrQuota
	}
	b, err := w.waitForRoom()
	if err != nil {
		w.outage.failed++
		w.outage.latest = err
		if errors.Is(err, ErrStalled) {
			w.broke(err, 1)
			err = w.reported(err)
		}
		return place{}, err
	}
	w.resume(b, e, now)
	w.seq++
	line := *e
	line.Seq = w.seq
	if line.origin == nil {
		line.origin = w.origin
	}
	if line.Time.IsZero() {
		line.Time = now
	}
	start := len(b.buf)
	b.buf = appendLine(b.buf, &line)
	at := place{in: b, bytes: len(b.buf) - start, end: len(b.buf)}
	s.wrote(at.bytes)
	w.startCommit()
	return at, nil
}

// startCommit has the queue written. w.mu is held.
func (w *Writer) startCommit() {
	if !w.group.running {
		w.group.running = true
		go w.commit()
	}
}

// settle waits for the write of a line, and reports how it ended. w.mu is held.
func (w *Writer) settle(at place, s *share) (err error) {
	b := at.in
	for !b.done {
		w.changed.Wait()
	}
	if b.err != nil && at.end > b.written {
		err = b.err
		s.wrote(-at.bytes)
		w.outage.failed++
		w.outage.latest = err
		err = w.reported(err)
	}
	w.release(b)
	return err
}

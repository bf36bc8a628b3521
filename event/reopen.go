package event

import (
	"errors"
	"io"
)

// Reopen puts next in the place of W and reports what W was, made durable, for
// the caller to close: log rotation renames the file, asks for Reopen (by
// SIGHUP, say), and no line is lost. Every line is whole in one of the two; an
// Emit that waits is answered by the one that its line goes to. A write in flight
// ends first; when it is overdue, the error is [ErrStalled], W stays and next
// is the caller's. An error beside a writer is about making that durable.
func (w *Writer) Reopen(next io.Writer) (old io.Writer, err error) {
	old, err = w.exchange(next)
	if err != nil || old == nil {
		return nil, err
	}
	return old, makeDurable(old)
}

func (w *Writer) exchange(next io.Writer) (io.Writer, error) {
	if next == nil {
		return nil, errNowhere
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begin()
	for w.files.next != nil { // another Reopen, which is bounded
		w.changed.Wait()
	}
	switch {
	case w.closed:
		return nil, ErrClosed
	case w.group.stalled:
		return nil, ErrStalled
	}
	change := &swap{to: next}
	w.files.next = change
	w.startCommit()
	for w.files.next == change && !w.group.stalled {
		w.changed.Wait()
	}
	if w.files.next == change {
		w.files.next = nil
		w.changed.Broadcast()
		return nil, ErrStalled
	}
	return change.from, nil
}

// exchangeNow puts next in the place of W between two writes. A line that W has
// only half of is ended there; if that fails it goes to next whole. w.mu is held.
func (w *Writer) exchangeNow() {
	if w.W != nil && w.torn.open() {
		b := &batch{first: w.seq + 1}
		w.group.writing = b
		w.watch()
		out, rest := w.W, w.torn.rest
		w.mu.Unlock()
		n, err := write(out, rest, nil)
		w.mu.Lock()
		w.group.writing, w.group.stalled = nil, false
		w.torn.rest = rest[n:]
		if err == nil {
			w.torn.mended()
		}
		if w.files.next == nil { // it took too long and the exchange was given up
			w.changed.Broadcast()
			return
		}
	}
	w.torn.moved()
	w.files.next.from = w.W
	w.W, w.files.next = w.files.next.to, nil
	w.files.dirty = false // Reopen sees to that
	w.begunAnew()
	w.changed.Broadcast()
}

var errHalf = errors.New("events: the last line is cut short")

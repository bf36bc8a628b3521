package event

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"
	"syscall"
	"time"
)

// Errors of [Writer].
var (
	// ErrStalled means that the operating system did not take a line in time:
	// nobody reads the pipe, or the disk hangs.
	ErrStalled = errors.New("events: the reader or disk did not take a line in time")
	// ErrClosed means that the writer was closed.
	ErrClosed = errors.New("events: writer closed")

	errNowhere = errors.New("events: the writer has nowhere to write")
)

// Implementation constants.
const (
	defaultWriteTimeout = 5 * time.Second
	maxQueueBytes       = 1 << 20  // lines that wait for the write before theirs; beyond, Emit waits
	keepBufferBytes     = 64 << 10 // larger buffers are not kept for the next batch
)

// Writer is the audit sink: JSON Lines that are never dropped. Emit returns
// once write(2) of its line has succeeded; events that arrive meanwhile share
// the next write. Set the fields before the first Emit. Safe for concurrent
// use.
//
// A write error, and a write that takes longer than Timeout, is the error of
// every Emit that waits for it; the gate then denies. The next Emit tries
// again, so a disk that has room again, or a reader that woke up, is enough to
// go on. Sequence numbers have no gaps: those of failed lines are used again. A
// line that an error cut in two is taken back from a file; where that is not
// possible (a pipe, or somebody else wrote behind it) it is completed before
// anything else is written, though its Emit has reported the error. Half a line
// that another process left at the end of the file is ended first.
//
// Left over: of a write that outlasted Timeout nobody can say whether its lines
// arrived. They may, later, under their numbers.
type Writer struct {
	W io.Writer // usually an *os.File. Close leaves it open. Nil: every Emit fails. See Reopen

	// Timeout bounds one write. Zero means 5 seconds.
	Timeout time.Duration

	mu       sync.Mutex
	changed  *sync.Cond // of mu; a write ended, stalled or failed
	watchdog *time.Timer
	queue    *batch    // gathers lines; nil when empty
	inflight *batch    // being written; nil when none
	since    time.Time // start of the write in flight
	spare    *batch    // for reuse
	rest     []byte    // what ends a line that an error cut in two
	cut      []byte    // that line, whole; nil when rest ends a line of somebody else
	began    bool      // the end of W was looked at
	next     io.Writer // takes the place of W before the next write
	seq      uint64    // of the newest line
	running  bool      // a commit goroutine exists
	stalled  bool      // its write is overdue
	lost     uint64    // events whose Emit reported an error
	err      error     // the latest of those errors
	closed   bool
}

// batch is the lines of one write.
type batch struct {
	buf     []byte
	first   uint64 // number of its first line
	users   int    // Emits that wait for it, and the commit
	done    bool
	err     error
	written int // bytes that the system took, when err is set
}

// Emit implements [Sink].
func (w *Writer) Emit(e Event) error {
	if e.Time.IsZero() {
		e.Time = time.Now()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.changed == nil {
		w.changed = sync.NewCond(&w.mu)
	}
	b, err := w.room()
	if err != nil {
		w.lost++
		w.err = err
		return err
	}
	w.seq++
	e.Seq = w.seq
	b.buf = appendLine(b.buf, &e)
	end := len(b.buf)
	if !w.running {
		w.running = true
		go w.commit()
	}
	for !b.done {
		w.changed.Wait()
	}
	if b.err != nil && end > b.written {
		err = b.err
		w.lost++
		w.err = err
	}
	w.release(b)
	return err
}

// room reports the batch that takes the next line, waiting while the queue is
// full. It is bounded by the watchdog: a write ends, or is overdue and fails
// the queue. w.mu is held.
func (w *Writer) room() (*batch, error) {
	for {
		switch {
		case w.W == nil:
			return nil, errNowhere
		case w.closed:
			return nil, ErrClosed
		case w.stalled:
			return nil, ErrStalled
		}
		if w.queue == nil {
			w.queue = w.fresh()
		}
		if b := w.queue; len(b.buf) < maxQueueBytes {
			b.users++
			return b, nil
		}
		w.changed.Wait()
	}
}

func (w *Writer) fresh() *batch {
	b := w.spare
	w.spare = nil
	if b == nil {
		b = new(batch)
	}
	*b = batch{buf: b.buf[:0], first: w.seq + 1}
	return b
}

// release ends one use of b and keeps it for reuse after the last.
func (w *Writer) release(b *batch) {
	b.users--
	if b.users == 0 && cap(b.buf) <= keepBufferBytes {
		w.spare = b
	}
}

// commit writes batches until none is left. One runs at a time.
func (w *Writer) commit() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.queue != nil || w.next != nil {
		if w.next != nil {
			w.turn()
			continue
		}
		b := w.queue
		b.users++
		w.queue, w.inflight = nil, b
		if len(b.buf) >= maxQueueBytes {
			w.changed.Broadcast() // whoever waits in room has room now
		}
		w.watch()
		out, rest, began := w.W, w.rest, w.began
		w.mu.Unlock()
		if !began && endsInHalf(out) {
			rest = []byte{'\n'}
		}
		n, err := write(out, rest, b.buf)
		if err != nil {
			n -= takeBack(out, halfLine(b.buf, n-len(rest)))
		}
		w.mu.Lock()
		w.rest, w.began = rest, true
		w.finish(b, n, err)
		w.release(b)
	}
	w.running = false
	if w.watchdog != nil {
		w.watchdog.Stop()
	}
	w.changed.Broadcast()
}

// write completes a cut line, then writes buf. It reports how many bytes of
// both together the system took.
func write(out io.Writer, rest, buf []byte) (int, error) {
	n := 0
	for _, p := range [2][]byte{rest, buf} {
		for len(p) > 0 {
			m, err := out.Write(p)
			m = min(max(m, 0), len(p))
			n += m
			p = p[m:]
			if err == nil && m == 0 {
				err = io.ErrShortWrite
			}
			if err != nil && len(p) > 0 {
				return n, fmt.Errorf("events: %w", err)
			}
		}
	}
	return n, nil
}

// finish books the end of b's write. w.mu is held.
func (w *Writer) finish(b *batch, n int, err error) {
	late := w.stalled
	w.inflight, w.stalled = nil, false
	if err == nil {
		w.rest, w.cut = nil, nil
	} else {
		n = w.keepRest(b, n)
		w.failQueue(err)
	}
	if !late {
		b.done, b.err, b.written = true, err, n
	}
	w.changed.Broadcast()
}

// keepRest works out which lines of b a failed write left whole, cut or
// unwritten, takes back the numbers of the unwritten, and reports how many
// bytes of b are in whole lines.
func (w *Writer) keepRest(b *batch, n int) int {
	if n < len(w.rest) {
		w.rest = w.rest[n:]
		w.seq = b.first - 1
		return 0
	}
	n -= len(w.rest)
	w.rest, w.cut = nil, nil
	whole := n - len(halfLine(b.buf, n))
	w.seq = b.first - 1 + uint64(bytes.Count(b.buf[:whole], []byte{'\n'}))
	if whole < n {
		end := n + bytes.IndexByte(b.buf[n:], '\n') + 1
		w.cut = bytes.Clone(b.buf[whole:end])
		w.rest = w.cut[n-whole:]
		w.seq++
	}
	return whole
}

// failQueue fails the lines that wait behind a failed or overdue write. Their
// numbers are free again (the caller has set w.seq, or does not change it when
// the queue is empty).
func (w *Writer) failQueue(err error) {
	if b := w.queue; b != nil {
		w.queue = nil
		b.done, b.err = true, err
	}
}

// watch starts the clock of a write.
func (w *Writer) watch() {
	w.since = time.Now()
	if w.watchdog == nil {
		w.watchdog = time.AfterFunc(w.timeout(), w.overdue)
		return
	}
	w.watchdog.Reset(w.timeout())
}

// overdue fails everybody who waits for a write that takes too long. The write
// itself goes on in its goroutine: nothing can interrupt it.
func (w *Writer) overdue() {
	w.mu.Lock()
	defer w.mu.Unlock()
	b := w.inflight
	if b == nil || w.stalled || time.Since(w.since) < w.timeout() {
		return
	}
	w.stalled = true
	b.done, b.err = true, ErrStalled
	if w.queue != nil {
		w.seq = w.queue.first - 1
		w.failQueue(ErrStalled)
	}
	w.changed.Broadcast()
}

func (w *Writer) timeout() time.Duration {
	if w.Timeout > 0 {
		return w.Timeout
	}
	return defaultWriteTimeout
}

// Close waits for the write in flight, makes the file durable where W is a
// file, and reports whether every event was recorded: the error says how many
// were not, and why. Later Emits fail. It leaves W open.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.changed == nil {
		w.changed = sync.NewCond(&w.mu)
	}
	if w.closed {
		return nil
	}
	w.closed = true
	w.changed.Broadcast()
	for w.running && !w.stalled {
		w.changed.Wait()
	}
	var errs []error
	if w.lost > 0 {
		errs = append(errs, fmt.Errorf("%d events were not recorded: %w", w.lost, w.err))
	}
	if len(w.rest) > 0 {
		errs = append(errs, errHalf)
	}
	if w.stalled {
		errs = append(errs, ErrStalled)
	} else {
		errs = append(errs, makeDurable(w.W))
	}
	return errors.Join(errs...)
}

// makeDurable syncs out where it is a file.
func makeDurable(out io.Writer) error {
	f, ok := out.(interface{ Sync() error })
	if !ok {
		return nil
	}
	err := f.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) || errors.Is(err, syscall.EROFS) {
		return nil // a pipe or a terminal: nothing to make durable
	}
	if err != nil {
		return fmt.Errorf("events: %w", err)
	}
	return nil
}

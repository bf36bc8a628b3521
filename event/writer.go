package event

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"syscall"
	"time"
)

// Errors of [Writer].
var (
	// ErrStalled means that the operating system did not accept a line in time:
	// nobody reads the pipe, or the disk hangs.
	ErrStalled = errors.New("events: the reader or disk did not take a line in time")
	// ErrClosed means that the writer was closed.
	ErrClosed = errors.New("events: writer closed")

	// ErrQuota means that the share ([Writer.Share]) of a policy or run has written all that it may.
	// Others may still write.
	ErrQuota = errors.New("events: the quota of this policy is used up")

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
// line that an error cut in two is removed from a file; if that is not possible
// (a pipe, or another process wrote behind it) it is completed before anything
// else is written, though its Emit has reported the error. Half a line
// that another process left at the end of the file is ended first.
//
// Left over: it is not known whether the lines of a write that outlasted Timeout
// arrived. They may, later, under their numbers.
type Writer struct {
	W io.Writer // usually an *os.File. Close leaves it open. Nil: every Emit fails. See Reopen

	// Timeout bounds one write. Zero means 5 seconds.
	Timeout time.Duration
	// Resource is where the program runs: every line says it, with one random word for
	// this Writer. Its keys are attributes as OpenTelemetry names them, such as
	// host.name. Empty: lines say that word alone; nil: not even that.
	Resource map[string]string
	// Log hears when lines cannot be written, once a minute while that lasts, and when
	// they can again. Nil: Emit alone reports it.
	Log *slog.Logger

	mu      sync.Mutex
	changed *sync.Cond // of mu; a write ended, stalled or failed
	group   group
	torn    torn
	files   target
	shares  []*share
	space   space
	outage  outage
	origin  *origin
	seq     uint64 // of the newest line
	closed  bool
}

// group is group commit: lines that arrive during a write share the next one.
// Writer.mu guards it.
type group struct {
	queue    *batch // gathers lines; nil when empty
	writing  *batch // nil when nothing is being written
	spare    *batch // for reuse
	running  bool   // a commit goroutine exists
	started  time.Time
	watchdog *time.Timer
	stalled  bool // the write is overdue
}

// batch is the lines of one write.
type batch struct {
	buf     []byte
	first   uint64 // number of its first line
	users   int    // Emits that wait for it, and the commit
	done    bool
	err     error
	written int  // bytes that the system accepted, if err is set
	resumes bool // it begins with a recordResumed
}

// Emit implements [Sink].
func (w *Writer) Emit(e Event) error { return w.emit(e, nil) }

// waitForRoom reports the batch for the next line, and waits while the queue is
// full. The watchdog bounds that: a write ends, or is overdue and fails the
// queue. w.mu is held.
func (w *Writer) waitForRoom() (*batch, error) {
	for {
		switch {
		case w.W == nil:
			return nil, errNowhere
		case w.closed:
			return nil, ErrClosed
		case w.group.stalled:
			return nil, ErrStalled
		}
		if w.group.queue == nil {
			w.group.queue = w.fresh()
		}
		if b := w.group.queue; len(b.buf) < maxQueueBytes {
			b.users++
			return b, nil
		}
		w.changed.Wait()
	}
}

func (w *Writer) fresh() *batch {
	b := w.group.spare
	w.group.spare = nil
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
		w.group.spare = b
	}
}

// commit writes batches until none is left. One runs at a time.
func (w *Writer) commit() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.group.queue != nil || w.files.next != nil {
		if w.files.next != nil {
			w.exchangeNow()
			continue
		}
		if w.files.due(w.W) && !w.torn.open() {
			w.rotateNow()
			continue // the queue may have waited too long
		}
		b := w.group.queue
		b.users++
		w.group.queue, w.group.writing = nil, b
		if len(b.buf) >= maxQueueBytes {
			w.changed.Broadcast() // there is room again
		}
		w.watch()
		out, t := w.W, w.torn
		w.mu.Unlock()
		t.check(out)
		n, err := write(out, t.rest, b.buf)
		if err != nil {
			n -= removeHalf(out, halfLine(b.buf, n-len(t.rest)))
		}
		w.mu.Lock()
		w.torn = t
		w.space.written += int64(n)
		w.files.wrote(n)
		w.finish(b, n, err)
		w.release(b)
		if now := time.Now(); now.Sub(w.space.at) >= measureEvery || w.space.written >= w.space.next {
			w.measureLocked(now)
		}
	}
	w.group.running = false
	if w.group.watchdog != nil {
		w.group.watchdog.Stop()
	}
	w.changed.Broadcast()
}

// write completes a torn line, then writes buf. It reports how many bytes of
// both together the system accepted.
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
	late := w.group.stalled
	w.group.writing, w.group.stalled = nil, false
	if err == nil {
		w.torn.mended()
		w.works(b)
	} else {
		newest := w.seq
		n = w.afterError(b, n)
		gone := newest - min(newest, w.seq)
		if n == 0 && b.resumes && gone > 0 {
			gone-- // that line is about others
		}
		w.broke(err, gone-w.failQueue(err))
	}
	if !late {
		b.done, b.err, b.written = true, err, n
	}
	w.changed.Broadcast()
}

// afterError works out which lines of b a failed write left whole, torn or
// unwritten, frees the numbers of the unwritten, and reports how many bytes of
// b are in whole lines. n counts what was written of the torn line before, too.
func (w *Writer) afterError(b *batch, n int) (whole int) {
	w.seq = b.first - 1
	if n < len(w.torn.rest) {
		w.torn.rest = w.torn.rest[n:]
		return 0
	}
	n -= len(w.torn.rest)
	w.torn.mended()
	whole = n - len(halfLine(b.buf, n))
	w.seq += uint64(bytes.Count(b.buf[:whole], []byte{'\n'}))
	if whole < n {
		w.torn.tear(b.buf[whole:], n-whole)
		w.seq++
	}
	return whole
}

// failQueue fails the lines that wait behind a failed or overdue write. Their
// numbers are free again (the caller has set w.seq, or does not change it when
// the queue is empty). It reports how many of them are about the outage itself.
func (w *Writer) failQueue(err error) (own uint64) {
	b := w.group.queue
	if b == nil {
		return 0
	}
	w.group.queue = nil
	b.done, b.err = true, err
	if b.resumes {
		return 1
	}
	return 0
}

// watch starts the clock of a write.
func (w *Writer) watch() {
	w.group.started = time.Now()
	if w.group.watchdog == nil {
		w.group.watchdog = time.AfterFunc(w.timeout(), w.overdue)
		return
	}
	w.group.watchdog.Reset(w.timeout())
}

// overdue fails every Emit that waits for a write that takes too long. The write
// itself goes on in its goroutine: nothing can interrupt it.
func (w *Writer) overdue() {
	w.mu.Lock()
	defer w.mu.Unlock()
	b := w.group.writing
	if b == nil || w.group.stalled || time.Since(w.group.started) < w.timeout() {
		return
	}
	w.group.stalled = true
	b.done, b.err = true, ErrStalled
	newest := w.seq
	notLost := uint64(0)
	if w.group.queue != nil {
		w.seq = w.group.queue.first - 1
		notLost = w.failQueue(ErrStalled)
	}
	w.broke(ErrStalled, newest-w.seq-notLost)
	w.changed.Broadcast()
}

func (w *Writer) timeout() time.Duration {
	if w.Timeout > 0 {
		return w.Timeout
	}
	return defaultWriteTimeout
}

// Close waits for the write in flight, makes the file durable if W is one, and reports whether every event was recorded: the error says how many
// were not, and why. Later Emits fail. It leaves W open.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begin()
	if w.closed {
		return nil
	}
	w.closed = true
	w.changed.Broadcast()
	for w.group.running && !w.group.stalled {
		w.changed.Wait()
	}
	var errs []error
	if o := &w.outage; o.failed > 0 {
		errs = append(errs, fmt.Errorf("%d events were not recorded: %w", o.failed, o.latest))
	}
	if w.torn.open() {
		errs = append(errs, errHalf)
	}
	if w.group.stalled {
		errs = append(errs, ErrStalled)
	} else {
		errs = append(errs, makeDurable(w.W))
	}
	return errors.Join(errs...)
}

// makeDurable syncs out if it is a file.
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

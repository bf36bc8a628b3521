package event

import (
	"errors"
	"io"
	"os"
	"time"
)

// rotateAgain is how long a Writer waits after a rotation that failed. Implementation
// constant.
const rotateAgain = time.Minute

// target is what a Writer knows of the files that it writes to, one after the other.
// Writer.mu guards it.
type target struct {
	next *swap // takes place before the next write; nil: none

	most  int64 // bytes that W holds before replace is called; zero: it never is
	size  int64 // of W, if sized
	sized bool
	after time.Time // no rotation before that
	total uint64    // bytes written, to all files
	dirty bool      // something was written and not made durable since

	replace func(old io.Writer) (io.Writer, error)
}

// swap is one change of files.
type swap struct {
	to   io.Writer
	from io.Writer // what was W; nil while it has not taken place
}

// Rotate has replace called between two writes, once W is a file of most bytes or more,
// and while events wait: it reports what takes the place of old, which is replace's to
// close from then on. A file is therefore at most one write (1 MiB) larger than most.
// Nil, without an error: old holds less by now, and stays. An error: old stays, and is
// tried again after a minute; replace is the one to tell somebody. Every line is whole in
// one file, and numbers go on. Call Rotate before the first Emit.
func (w *Writer) Rotate(most int64, replace func(old io.Writer) (io.Writer, error)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.files.most, w.files.replace = most, replace
}

// due reports whether out, which is W, is to be replaced.
func (f *target) due(out io.Writer) bool {
	if f.most <= 0 {
		return false
	}
	if !f.sized {
		f.size, f.sized = sizeOf(out), true
	}
	return f.size >= f.most && !time.Now().Before(f.after)
}

// wrote notes that n bytes went to W.
func (f *target) wrote(n int) {
	f.size += int64(n)
	f.total += uint64(max(n, 0))
	f.dirty = f.dirty || n > 0
}

// sizeOf is the size of a file; zero for anything else.
func sizeOf(out io.Writer) int64 {
	f, ok := out.(*os.File)
	if !ok {
		return 0
	}
	info, err := f.Stat()
	if err != nil {
		return 0
	}
	return info.Size()
}

// rotateNow has W replaced. The watchdog runs meanwhile: a file system that hangs fails
// the events that wait. w.mu is held, and given up for the call.
func (w *Writer) rotateNow() {
	w.group.writing = &batch{first: w.seq + 1}
	w.watch()
	out, replace := w.W, w.files.replace
	w.mu.Unlock()
	next, err := replace(out)
	w.mu.Lock()
	w.group.writing, w.group.stalled = nil, false
	w.files.sized = false
	switch {
	case err != nil:
		w.files.after = time.Now().Add(rotateAgain)
	case next != nil:
		w.torn.moved()
		w.W = next
		w.files.dirty = false // replace saw to that
		w.begunAnew()
	}
	w.changed.Broadcast()
}

// Written reports how many bytes were written so far, to all files.
func (w *Writer) Written() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.files.total
}

// Room reports how many bytes an ordinary user may still write to the file system of W,
// and how many it has; ok is false if W is no regular file.
func (w *Writer) Room() (free, size uint64, ok bool) {
	w.mu.Lock()
	out := w.W
	w.mu.Unlock()
	return freeSpace(out)
}

// Sync makes durable what was written so far. What cannot be made durable counts as not
// recorded: flows are denied until a line was written after that.
func (w *Writer) Sync() error {
	defer w.tell()
	w.mu.Lock()
	w.begin()
	out, dirty := w.W, w.files.dirty
	w.files.dirty = false
	w.mu.Unlock()
	if !dirty {
		return nil
	}
	err := makeDurable(out)
	if err == nil || errors.Is(err, os.ErrClosed) { // who has closed it has made it durable
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.broke(err, 0)
	return err
}

package http1

import (
	"errors"
	"io"
	"os"
	"sync"
	"time"
)

// DefaultEndGrace outlasts most answers. On the wire a client that has ended its
// sending half looks like one that has gone, until bytes are sent to it.
const DefaultEndGrace = 30 * time.Second

// watchAfter is how long a request is served before anybody looks whether its
// client is still there: most are done by then. Implementation constant.
const watchAfter = 20 * time.Millisecond

// watcher looks for the end of a client whose request is being served.
type watcher struct {
	mu    sync.Mutex
	timer *time.Timer
	gone  func()
	on    bool          // between Watch and Unwatch
	stop  chan struct{} // ends the look under way; nil: there is none
	over  chan struct{} // closed at its end
}

// Watch begins to look for the client's end while its request is served. gone is
// called at most once, from another goroutine, when the client's connection
// fails, or EndGrace after the client has ended its sending half (a client may
// half-close behind its request, RFC 9112 section 9.6). Unwatch must follow.
func (c *Conn) Watch(gone func()) {
	w := &c.watcher
	w.mu.Lock()
	defer w.mu.Unlock()
	w.on, w.gone = true, gone
	if w.timer == nil {
		w.timer = time.AfterFunc(watchAfter, c.look)
		return
	}
	w.timer.Reset(watchAfter)
}

// Unwatch ends Watch: nothing is read by it any more, and gone is not called.
func (c *Conn) Unwatch() {
	w := &c.watcher
	w.mu.Lock()
	w.on = false
	w.timer.Stop()
	stop, over := w.stop, w.over
	w.mu.Unlock()
	if stop == nil {
		return
	}
	close(stop)
	c.clocks.stop(c.Conn)
	<-over
	c.clocks.resume(c.Conn)
}

// look waits for the end of the client, or for anything else.
func (c *Conn) look() {
	w := &c.watcher
	w.mu.Lock()
	if !w.on || w.stop != nil {
		w.mu.Unlock()
		return
	}
	stop, over := make(chan struct{}), make(chan struct{})
	w.stop, w.over = stop, over
	gone := w.gone
	w.mu.Unlock()
	later, ended := c.lookNow(stop)
	if ended {
		gone()
	}
	w.mu.Lock()
	w.stop = nil
	if later && w.on {
		w.timer.Reset(watchAfter)
	}
	w.mu.Unlock()
	close(over)
}

// lookNow reads, unless content is still to come, whose reader learns the same.
// What it reads is the next request's. later: nothing was learnt; ended: the client
// has gone.
func (c *Conn) lookNow(stop <-chan struct{}) (later, ended bool) {
	if !c.readMu.TryLock() {
		return true, false
	}
	defer c.readMu.Unlock()
	switch {
	case c.refused || len(c.buf) > 0 && c.body.phase == done:
		return false, false
	case c.body.phase != done:
		return true, false
	}
	c.clocks.within(c.Conn, 0)
	err := c.fill()
	switch {
	case err == nil || errors.Is(err, os.ErrDeadlineExceeded) || err == errNoRoom: //nolint:errorlint // our own
		return false, false
	case err != io.EOF: //nolint:errorlint // io.Reader: EOF comes bare
		return false, true
	}
	t := time.NewTimer(c.EndGrace)
	defer t.Stop()
	select {
	case <-stop:
		return false, false
	case <-t.C:
		return false, true
	}
}

// Abort closes the connection at once, without a wait for what is unread.
func (c *Conn) Abort() { _ = c.Conn.Close() }

// Finish closes the connection. If there is something unread, it first lets the
// client read the answer: a close with unread input would send a reset that can
// overtake it (RFC 9112 section 9.6).
func (c *Conn) Finish() {
	if c.CloseWrite() == nil && c.clocks.last(c.Conn) {
		c.readMu.Lock()
		if c.refused || c.body.phase != done || len(c.buf) > 0 {
			_, _ = io.CopyN(io.Discard, c.Conn, lingerBytes)
		}
		c.readMu.Unlock()
	}
	_ = c.Conn.Close()
}

// last bounds all reads that are left by one time.
func (k *clocks) last(c interface{ SetReadDeadline(t time.Time) error }) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.stopped = true
	return c.SetReadDeadline(time.Now().Add(lingerTime)) == nil
}

package http1

import (
	"io"
	"os"
	"time"
)

// DefaultEndGrace outlasts most answers. net/http takes the end of a client's
// sending half for a client that has gone, and cancels the request; on the wire
// the two look the same, until bytes are sent to a client that has gone.
const DefaultEndGrace = 30 * time.Second

// holdEnd keeps the end of the stream from the server for a while when a
// request is being served, so that a client may half-close behind its request
// (RFC 9112 section 9.6). It returns early when the request is done, the server
// needs its read back, or the connection is closed.
func (c *Conn) holdEnd() error {
	c.stateMu.Lock()
	if c.busy <= 0 || c.abortedLocked() {
		defer c.stateMu.Unlock()
		return c.endLocked()
	}
	wake := make(chan struct{})
	c.wake = wake
	c.stateMu.Unlock()

	t := time.NewTimer(c.EndGrace)
	defer t.Stop()
	select {
	case <-t.C:
	case <-wake:
	}
	c.stateMu.Lock()
	defer c.stateMu.Unlock()
	c.wake = nil
	return c.endLocked()
}

func (c *Conn) endLocked() error {
	if c.abortedLocked() {
		return os.ErrDeadlineExceeded
	}
	return io.EOF
}

// wakeLocked ends holdEnd. The caller holds stateMu.
func (c *Conn) wakeLocked() {
	if c.wake != nil {
		close(c.wake)
		c.wake = nil
	}
}

// Abort closes the connection at once, without the wait of Close.
func (c *Conn) Abort() {
	c.stateMu.Lock()
	c.busy = 0
	c.wakeLocked()
	c.stateMu.Unlock()
	_ = c.Conn.Close()
}

package http1

import (
	"io"
	"os"
	"time"
)

// endGrace is how long a client that has ended its sending half is taken to
// wait for its response. net/http takes the end for a client that has gone, and
// cancels the request; on the wire the two look the same.
const endGrace = 3 * time.Second

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

	t := time.NewTimer(c.grace)
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

package http1

import "time"

const defaultHeadTimeout = 10 * time.Second

// SetReadDeadline sets the server's read deadline. The gate keeps it to put it
// back after a deadline of its own.
func (c *Conn) SetReadDeadline(t time.Time) error {
	c.stateMu.Lock()
	defer c.stateMu.Unlock()
	c.dl, c.own = t, false
	if c.abortedLocked() {
		c.wakeLocked()
	}
	return c.Conn.SetReadDeadline(t)
}

// SetDeadline sets both of the server's deadlines.
func (c *Conn) SetDeadline(t time.Time) error {
	if err := c.SetReadDeadline(t); err != nil {
		return err
	}
	return c.SetWriteDeadline(t)
}

// aborted reports whether the server has put an end to the read that is under
// way: net/http does so with a deadline far in the past.
func (c *Conn) aborted() bool {
	c.stateMu.Lock()
	defer c.stateMu.Unlock()
	return c.abortedLocked()
}

func (c *Conn) abortedLocked() bool {
	return !c.dl.IsZero() && c.dl.Before(time.Unix(1<<20, 0))
}

// startHeadClock bounds the rest of a head, of which the first byte is there.
func (c *Conn) startHeadClock() {
	c.stateMu.Lock()
	defer c.stateMu.Unlock()
	if c.headEnd.IsZero() {
		d := c.HeadTimeout
		if d <= 0 {
			d = defaultHeadTimeout
		}
		c.headEnd = time.Now().Add(d)
	}
	c.setOwn(c.headEnd)
}

func (c *Conn) stopHeadClock() {
	c.stateMu.Lock()
	defer c.stateMu.Unlock()
	c.headEnd = time.Time{}
}

// setIdle bounds the next wait for more of a body.
func (c *Conn) setIdle() {
	if c.IdleTimeout <= 0 {
		return
	}
	c.stateMu.Lock()
	defer c.stateMu.Unlock()
	c.setOwn(time.Now().Add(c.IdleTimeout))
}

// setOwn puts the gate's deadline in force, unless the server has just put an
// end to the read. The caller holds stateMu.
func (c *Conn) setOwn(t time.Time) {
	if c.abortedLocked() {
		return
	}
	c.own = true
	_ = c.Conn.SetReadDeadline(t)
}

// restoreDeadline puts the server's read deadline back in force.
func (c *Conn) restoreDeadline() {
	c.stateMu.Lock()
	defer c.stateMu.Unlock()
	if c.own {
		c.own = false
		_ = c.Conn.SetReadDeadline(c.dl)
	}
}

package http1

import (
	"errors"
	"io"
	"os"
)

// fill reads more into buf. The caller has bounded buf.
func (c *Conn) fill() error {
	if c.err != nil {
		return c.err
	}
	if len(c.buf) == 0 {
		c.buf = c.base[:0]
	}
	if cap(c.buf)-len(c.buf) < firstBuffer/4 && !c.grow() {
		return errNoRoom
	}
	n, err := c.Conn.Read(c.buf[len(c.buf):cap(c.buf)])
	c.buf = c.buf[:len(c.buf)+n]
	if n > 0 {
		return nil // an error comes again
	}
	if err == nil {
		err = io.ErrNoProgress
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		c.err = err
	}
	return err
}

// errNoRoom says that Grow said no.
var errNoRoom = errors.New("no room for a longer head")

// grow makes a larger buffer; false: it may not.
func (c *Conn) grow() bool {
	size := max(firstBuffer, 2*len(c.buf))
	if size == firstBuffer && len(c.base) == firstBuffer { // taken bytes lie in front
		c.buf = c.base[:copy(c.base, c.buf)]
		return true
	}
	if by := size - firstBuffer - c.grown; by != 0 && c.Grow != nil {
		if !c.Grow(by) {
			return false
		}
		c.grown += by
	}
	base := make([]byte, size)
	c.base, c.buf = base, base[:copy(base, c.buf)]
	return true
}

// shrink drops a buffer that a long head has made large: a connection may stay
// open for long after it. Nothing is held.
func (c *Conn) shrink() {
	if len(c.base) > firstBuffer {
		c.base, c.buf = nil, nil
		c.giveBack()
	}
}

func (c *Conn) giveBack() {
	if c.grown > 0 {
		c.Grow(-c.grown)
		c.grown = 0
	}
}

// Release gives back to Grow what the buffer grew by. Nothing may be read after
// it.
func (c *Conn) Release() {
	c.readMu.Lock()
	defer c.readMu.Unlock()
	c.giveBack()
}

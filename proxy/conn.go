package proxy

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"time"

	"egressd/proxy/internal/admission"
	"egressd/proxy/internal/pool"
)

// pooledBytes is the size of the buffers that heads and hellos are read into;
// almost all fit.
const pooledBytes = 4 << 10

var errTooLong = errors.New("longer than the limit")

// conn is a connection whose first bytes can be looked at before they are
// read. One goroutine reads at a time.
type conn struct {
	net.Conn
	v      *visit // nil in tests of a part
	pool   *pool.Buffers
	budget *admission.Budget // of what is held over pooledBytes; nil: none
	buf    *[]byte           // nil while nothing is held
	r, w   int               // (*buf)[r:w] is held
	high   int               // the most of buf that was ever used

	// tunnel is the flow that was let pass and is still to be carried: what
	// becomes of the connection when its door has returned.
	tunnel *relayed

	onReset func() // hears of a reset before it is sent; nil: nobody does
}

// held reports the bytes read from the client and not consumed.
func (c *conn) held() []byte {
	if c.buf == nil {
		return nil
	}
	return (*c.buf)[c.r:c.w]
}

// more reads some more bytes behind the held ones, which never grow over limit.
func (c *conn) more(limit int) error {
	if c.buf == nil {
		c.buf, c.r, c.w, c.high = c.pool.Get(pooledBytes), 0, 0, 0
	}
	if c.w-c.r >= limit {
		return errTooLong
	}
	if c.w == len(*c.buf) {
		if err := c.grow(limit); err != nil {
			return err
		}
	}
	end := min(len(*c.buf), c.r+limit)
	for range 100 { // as bufio: a reader that gives nothing and no error is broken
		n, err := c.Conn.Read((*c.buf)[c.w:end])
		c.w += n
		c.high = max(c.high, c.w)
		if n > 0 {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return io.ErrNoProgress
}

// grow makes room: by moving the held bytes to the front, else by a larger
// buffer.
func (c *conn) grow(limit int) error {
	held := c.held()
	if c.r > 0 {
		c.w, c.r = copy(*c.buf, held), 0
		return nil
	}
	size := min(4*len(*c.buf), max(limit, len(*c.buf)+1))
	if c.budget != nil && !c.budget.Take(size-len(*c.buf)) {
		return admission.ErrHeldTooMuch
	}
	larger := make([]byte, size)
	copy(larger, held)
	if len(*c.buf) == pooledBytes {
		c.pool.Put(c.buf, c.high)
	}
	c.buf = &larger
	return nil
}

// skip consumes n held bytes.
func (c *conn) skip(n int) {
	if c.r += n; c.r == c.w {
		c.release()
	}
}

// release gives the buffer back; what is held is lost.
func (c *conn) release() {
	if c.buf != nil {
		c.giveBack()
		c.buf, c.r, c.w = nil, 0, 0
	}
}

// giveBack returns buf to the pool, or what it has grown by to the budget.
func (c *conn) giveBack() {
	if len(*c.buf) == pooledBytes {
		c.pool.Put(c.buf, c.high)
		return
	}
	if c.budget != nil {
		c.budget.GiveBack(len(*c.buf) - pooledBytes)
	}
}

// carry carries the tunnel that a door may have left, to its end.
func (c *conn) carry() {
	if c.tunnel == nil {
		return
	}
	ended := make(chan struct{})
	c.tunnel.carry(func() { close(ended) })
	<-ended
}

// SetReadDeadline sets the deadline unless the client must make room.
func (c *conn) SetReadDeadline(t time.Time) error {
	if c.v == nil {
		return c.Conn.SetReadDeadline(t)
	}
	return c.v.setReadDeadline(t)
}

// SetDeadline sets both deadlines.
func (c *conn) SetDeadline(t time.Time) error {
	if err := c.SetReadDeadline(t); err != nil {
		return err
	}
	return c.SetWriteDeadline(t)
}

// Read reads the held bytes first.
func (c *conn) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if c.buf != nil && c.r < c.w {
		n := copy(p, c.held())
		c.skip(n)
		return n, nil
	}
	return c.Conn.Read(p)
}

// CloseWrite ends the sending half.
func (c *conn) CloseWrite() error { return halfClose(c.Conn) }

type writeCloser interface{ CloseWrite() error }

// halfClose ends the sending half of c, or all of it where c has no halves.
func halfClose(c net.Conn) error {
	if w, ok := c.(writeCloser); ok {
		return w.CloseWrite()
	}
	return c.Close()
}

// reset makes the close that follows send a RST.
func reset(c net.Conn) {
	if p, ok := c.(*conn); ok {
		if p.onReset != nil {
			p.onReset()
		}
		c = p.Conn
	}
	if l, ok := c.(interface{ SetLinger(int) error }); ok {
		_ = l.SetLinger(0) // the close that follows is what counts
	}
	_ = c.Close()
}

// peer reports the client's address, zero when it has none.
func peer(c net.Conn) netip.AddrPort { return addrPort(c.RemoteAddr()) }

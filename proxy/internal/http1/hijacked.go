package http1

import (
	"bufio"
	"net"
)

// Hijacked is a connection that was taken from an HTTP server, whose buffer r
// may hold bytes that are still to be read. Closing its writing half closes that
// of c, or all of c if it has no halves.
func Hijacked(c net.Conn, r *bufio.Reader) net.Conn { return &hijacked{Conn: c, r: r} }

type hijacked struct {
	net.Conn
	r *bufio.Reader
}

// Read reads what was read ahead first.
func (c *hijacked) Read(p []byte) (int, error) {
	if c.r != nil {
		if n := c.r.Buffered(); n > 0 {
			return c.r.Read(p[:min(len(p), n)])
		}
		c.r = nil
	}
	return c.Conn.Read(p)
}

// CloseWrite half-closes the connection.
func (c *hijacked) CloseWrite() error {
	if w, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return c.Conn.Close()
}

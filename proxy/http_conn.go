package proxy

import (
	"bufio"
	"errors"
	"net"
)

var errConnDone = errors.New("the one connection is done")

// oneConn is a listener that accepts one connection and then waits until that
// connection is done, so that http.Server.Serve returns no earlier.
type oneConn struct {
	conn net.Conn
	h    *httpConn
}

// Accept implements net.Listener.
func (l *oneConn) Accept() (net.Conn, error) {
	if c := l.conn; c != nil {
		l.conn = nil
		return c, nil
	}
	<-l.h.finished
	return nil, errConnDone
}

// Close implements net.Listener.
func (l *oneConn) Close() error { return nil }

// Addr implements net.Listener.
func (l *oneConn) Addr() net.Addr { return l.h.gate.LocalAddr() }

// replayConn is a hijacked connection whose first bytes net/http has read ahead.
type replayConn struct {
	net.Conn
	r *bufio.Reader
}

// Read reads what was read ahead first.
func (c *replayConn) Read(p []byte) (int, error) {
	if c.r != nil {
		if n := c.r.Buffered(); n > 0 {
			return c.r.Read(p[:min(len(p), n)])
		}
		c.r = nil
	}
	return c.Conn.Read(p)
}

// CloseWrite half-closes the connection.
func (c *replayConn) CloseWrite() error { return halfClose(c.Conn) }

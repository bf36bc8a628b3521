package proxy

import (
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

// done says that net/http is done with the connection.
func (h *httpConn) done() { h.finish.Do(func() { close(h.finished) }) }

package proxy

import (
	"errors"
	"net"

	"egressd/proxy/internal/forward"
	"egressd/proxy/internal/origins"
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

// pools reports where the connections to origins are kept that the next request
// may use.
func (h *httpConn) pools() *origins.Pools {
	if h.bound != nil {
		return h.bound
	}
	return &h.s.pool
}

// bind gives the client connections of its own, from the next request on.
func (h *httpConn) bind() {
	if h.bound == nil {
		h.bound = new(origins.Pools)
	}
}

// unbind closes them.
func (h *httpConn) unbind() {
	if h.bound != nil {
		h.bound.Close()
	}
}

// newForwarder makes what keeps the connections of one policy.
func (s *Server) newForwarder() forward.Forwarder {
	return forward.New(forward.Config{
		RootCAs: s.RootCAs, Buffers: &s.bodies, Sent: &s.carried[out], Received: &s.carried[in],
	})
}

package proxy

import (
	"egressd/proxy/internal/forward"
	"egressd/proxy/internal/origins"
)

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

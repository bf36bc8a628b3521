package proxy

import (
	"context"
	"net"
	"net/netip"
)

// serveConnect serves one CONNECT whose head (request line to the empty line,
// both included) has been read from c; what follows it is still to be read
// from c. It closes c.
func (s *Server) serveConnect(ctx context.Context, c net.Conn, head []byte, client netip.AddrPort) {
	c.Close()
}

package proxy

import (
	"context"
	"io"
	"net"
	"net/netip"

	"egressd/event"
	"egressd/internal/wire"
	"egressd/policy"
)

// established answers a CONNECT that is allowed (RFC 9110 section 9.3.6).
const established = "HTTP/1.1 200 Connection established\r\n\r\n"

// connectDoor reads the rest of a CONNECT head and serves it. What the client
// sent behind the head stays held.
func (s *Server) connectDoor(ctx context.Context, c *conn) {
	limit := s.bounds().headBytes
	from := 0
	for {
		n, st := wire.HeadEnd(c.held(), from)
		switch st {
		case wire.Done:
			if n > limit {
				s.badConnect(ctx, c, because(policy.ReasonMalformed), "the request head is too long")
				return
			}
			head := c.held()[:n]
			f, d, detail := s.parseConnect(ctx, c, head, peer(c))
			c.skip(n)
			f.connect(d, detail)
			return
		case wire.Bad:
			s.badConnect(ctx, c, because(policy.ReasonMalformed), "a line of the request head ends in a bare CR or LF, or holds a NUL")
			return
		}
		from = len(c.held())
		if err := c.more(limit); err != nil {
			detail := "the request head does not end"
			if err == errTooLong {
				detail = "the request head is too long"
			}
			s.badConnect(ctx, c, because(readReason(err)), detail)
			return
		}
	}
}

// serveConnect serves one CONNECT whose head (request line to the empty line,
// both included) has been read from nc; what follows it is still to be read
// from nc. It closes nc.
func (s *Server) serveConnect(ctx context.Context, nc net.Conn, head []byte, client netip.AddrPort) {
	c, ok := nc.(*conn)
	if !ok {
		c = &conn{Conn: nc, pool: &s.heads}
		defer c.release()
	}
	if n, st := wire.HeadEnd(head, 0); st != wire.Done || n != len(head) {
		s.badConnect(ctx, c, because(policy.ReasonMalformed), "the request head cannot be read")
		return
	}
	f, d, detail := s.parseConnect(ctx, c, head, client)
	f.connect(d, detail)
}

// parseConnect reads head. A decision with a reason other than NoPolicy says
// what is wrong with it.
func (s *Server) parseConnect(ctx context.Context, c *conn, head []byte, client netip.AddrPort) (f *flow, d policy.Decision, detail string) {
	f = s.newConnectFlow(ctx, c, client)
	req, err := wire.ParseConnect(head)
	if err != nil {
		return f, because(policy.ReasonMalformed), err.Error()
	}
	host, port, err := policy.ParseAuthority(req.Authority)
	if err != nil {
		return f, because(policy.ReasonMalformed), err.Error()
	}
	f.req.Host, f.req.Port = host, port
	if req.HasHost && !sameAuthority(req.Host, host, port) {
		return f, because(policy.ReasonHostMismatch), "the Host header names another host than the CONNECT authority"
	}
	return f, policy.Decision{}, ""
}

// sameAuthority reports whether a Host header names the authority of its
// CONNECT (RFC 9112 section 3.2). Its port may be left out.
func sameAuthority(header string, host policy.Host, port uint16) bool {
	if h, p, err := policy.ParseAuthority(header); err == nil {
		return h == host && p == port
	}
	h, err := policy.ParseHost(header)
	return err == nil && h == host
}

func (s *Server) newConnectFlow(ctx context.Context, c *conn, client netip.AddrPort) *flow {
	f := &flow{s: s, ctx: ctx, c: c, sc: scope{door: event.DoorConnect, flow: s.newFlow(), client: client}}
	f.accept = func() error {
		_, err := io.WriteString(c.Conn, established)
		return err
	}
	f.deny = func(d policy.Decision, detail string) { s.denyHTTP(c.Conn, f.req, d, detail) }
	return f
}

// connect runs the flow unless its head was bad.
func (f *flow) connect(d policy.Decision, detail string) {
	if detail != "" {
		f.refuse(d, detail)
		return
	}
	f.run()
}

func (s *Server) badConnect(ctx context.Context, c *conn, d policy.Decision, detail string) {
	s.newConnectFlow(ctx, c, peer(c)).refuse(d, detail)
}

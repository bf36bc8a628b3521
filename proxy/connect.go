package proxy

import (
	"context"
	"io"
	"net"

	"egressd/event"
	"egressd/policy"
	"egressd/proxy/internal/wire"
)

// established answers a CONNECT that is allowed (RFC 9110 section 9.3.6).
const established = "HTTP/1.1 200 Connection established\r\n\r\n"

// connectDoor reads the rest of a CONNECT head and serves it. What the client
// sent behind the head stays held.
func (s *Server) connectDoor(ctx context.Context, c *conn) {
	limit := s.bounds().headBytes
	f := s.newConnectFlow(ctx, c)
	from := 0
	for {
		n, st := wire.HeadEnd(c.held(), from)
		switch st {
		case wire.Done:
			if n > limit {
				f.refuse(because(policy.ReasonMalformed), "the request head is too long")
				return
			}
			no := f.parseConnect(c.held()[:n])
			c.skip(n)
			f.connect(no)
			return
		case wire.Bad:
			f.refuse(because(policy.ReasonMalformed), "a line of the request head ends in a bare CR or LF, or holds a NUL")
			return
		}
		from = len(c.held())
		if err := c.more(limit); err != nil {
			reason, detail := f.readReason(err, policy.ReasonMalformed)
			if detail == "" {
				detail = "the request head does not end"
			}
			if err == errTooLong {
				detail = "the request head is too long"
			}
			f.refuse(because(reason), detail)
			return
		}
	}
}

// serveConnect serves one CONNECT whose head (request line to the empty line,
// both included) has been read from nc; what follows it is still to be read
// from nc. It closes nc.
func (s *Server) serveConnect(ctx context.Context, nc net.Conn, head []byte) {
	c := &conn{Conn: nc, v: nil, pool: &s.heads, budget: &s.held}
	defer c.release()
	f := s.newConnectFlow(ctx, c)
	if n, st := wire.HeadEnd(head, 0); st != wire.Done || n != len(head) {
		f.refuse(because(policy.ReasonMalformed), "the request head cannot be read")
		return
	}
	f.connect(f.parseConnect(head))
	c.carry()
}

// parseConnect reads head, and what is wrong with it. Who judges it is settled
// even where it is wrong: the event is theirs.
func (f *flow) parseConnect(head []byte) *refusal {
	req, err := wire.ParseConnect(head)
	if err != nil {
		return refuseFor(policy.ReasonMalformed, err.Error())
	}
	if no := f.settle(basicCredentials(req.ProxyAuth, req.HasProxyAuth)); no != nil {
		f.req.Host, f.req.Port, _ = policy.ParseAuthority(req.Authority) // for the event
		return no
	}
	host, port, err := policy.ParseAuthority(req.Authority)
	if err != nil {
		return refuseFor(policy.ReasonMalformed, err.Error())
	}
	f.req.Host, f.req.Port = host, port
	if req.HasHost && !sameAuthority(req.Host, host, port) {
		return refuseFor(policy.ReasonHostMismatch, "the Host header names another host than the CONNECT authority")
	}
	return nil
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

func (s *Server) newConnectFlow(ctx context.Context, c *conn) *flow {
	f := s.newFlow(ctx, c, event.DoorConnect)
	f.accept = func() error {
		_, err := io.WriteString(c.Conn, established)
		return err
	}
	f.deny = func(d policy.Decision, detail string) { f.s.denyHTTP(c.Conn, f.req, d, detail) }
	return f
}

// connect runs the flow unless its head was bad.
func (f *flow) connect(no *refusal) {
	if no != nil {
		f.refuse(no.d, no.detail)
		return
	}
	f.run()
}

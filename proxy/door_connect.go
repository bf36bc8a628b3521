package proxy

import (
	"context"
	"io"
	"net"

	"egressd/event"
	"egressd/policy"
	"egressd/proxy/internal/denial"
	"egressd/proxy/internal/peek"
	"egressd/proxy/internal/wire"
)

// established answers a CONNECT that is allowed (RFC 9110 section 9.3.6).
const established = "HTTP/1.1 200 Connection established\r\n\r\n"

// connect is the door for CONNECT (RFC 9110 section 9.3.6), and the voice of all
// that is refused in HTTP.
type connect struct{}

func (connect) name() event.Door              { return event.DoorConnect }
func (connect) match(first []byte) wire.State { return wire.IsConnect(first) }

// serve reads the rest of the head. What the client sent behind it stays held.
func (connect) serve(ctx context.Context, c *conn) *tunnel {
	f := newConnectFlow(ctx, c)
	limit := f.s.bounds().headBytes
	from := 0
	for {
		n, st := wire.HeadEnd(c.Held(), from)
		switch st {
		case wire.Done:
			if n > limit {
				f.refuse(because(policy.ReasonMalformed), "the request head is too long")
				return nil
			}
			no := f.parseConnect(c.Held()[:n])
			c.Skip(n)
			return f.runUnless(no)
		case wire.Bad:
			f.refuse(because(policy.ReasonMalformed), "a line of the request head ends in a bare CR or LF, or holds a NUL")
			return nil
		}
		from = len(c.Held())
		if err := c.More(limit); err != nil {
			reason, detail := f.readReason(err, policy.ReasonMalformed)
			if detail == "" {
				detail = "the request head does not end"
			}
			if err == peek.ErrTooLong {
				detail = "the request head is too long"
			}
			f.refuse(because(reason), detail)
			return nil
		}
	}
}

// serveConnect serves one CONNECT that came behind other requests on c. Its head
// (request line to the empty line, both included) has been read from rest; what
// follows it is still to be read from rest. It closes rest.
func serveConnect(ctx context.Context, c *conn, rest net.Conn, head []byte) {
	f := newConnectFlow(ctx, c)
	f.in = &peek.Stream{Conn: rest, Pool: &f.s.heads, Budget: &f.s.held}
	defer f.in.Release()
	if n, st := wire.HeadEnd(head, 0); st != wire.Done || n != len(head) {
		f.refuse(because(policy.ReasonMalformed), "the request head cannot be read")
		return
	}
	if t := f.runUnless(f.parseConnect(head)); t != nil {
		t.carryAndWait()
	}
}

// parseConnect reads head into the flow and reports what is wrong with it. It
// finds who judges the flow even then: the event is theirs.
func (f *flow) parseConnect(head []byte) *refusal {
	req, err := wire.ParseConnect(head)
	if err != nil {
		return refuseFor(policy.ReasonMalformed, err.Error())
	}
	if no := f.authenticate(wire.BasicCredentials(req.ProxyAuth, req.HasProxyAuth)); no != nil {
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

func newConnectFlow(ctx context.Context, c *conn) *flow {
	f := newFlow(ctx, c, connect{}.name())
	f.door = connect{}
	return f
}

// accept implements voice.
func (connect) accept(f *flow) error {
	_, err := io.WriteString(f.in.Conn, established)
	return err
}

// deny implements voice.
func (connect) deny(f *flow, d policy.Decision, detail string) {
	denial.Response{Request: f.req, Decision: d, Detail: detail, Policy: f.s.PolicyName, Close: true}.Send(f.in.Conn)
}

// runUnless runs the flow unless it has been refused already.
func (f *flow) runUnless(no *refusal) *tunnel {
	if no != nil {
		f.refuse(no.d, no.detail)
		return nil
	}
	return f.run()
}

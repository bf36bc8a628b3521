package proxy

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"time"

	"egressd/event"
	"egressd/policy"
	"egressd/proxy/internal/denial"
	"egressd/proxy/internal/peek"
	"egressd/proxy/internal/socket"
	"egressd/proxy/internal/wire"
)

// Ports whose protocol names the host it wants.
const (
	portHTTP  = 80
	portHTTPS = 443
)

// captured is the door for connections that capture rules sent here. Their
// clients do not know that there is a proxy: they say nothing to it, and it says
// nothing to them but no.
type captured struct {
	own netip.AddrPort // the listener's address
}

func (captured) name() event.Door { return event.DoorTransparent }

func (d captured) serve(ctx context.Context, c *conn) *tunnel {
	f := newFlow(ctx, c, d.name())
	dst, err := c.front.destination(c.Conn)
	if err != nil {
		f.refuse(because(policy.ReasonInternal), err.Error())
		return nil
	}
	f.sc.addr = dst
	c.onReset = func() { c.front.Resets.Note(c.client, dst, c.front.now()) }
	f.req = policy.Request{Host: policy.HostFromAddr(dst.Addr()), Port: dst.Port()}
	if no := f.authenticate(wire.Credentials{}); no != nil {
		f.refuseCaptured(no.d, no.detail)
		return nil
	}
	if !f.begin() {
		return nil
	}
	if dst == d.own || d.own.Addr().IsUnspecified() && dst.Port() == d.own.Port() && dst.Addr().IsLoopback() {
		f.refuse(because(policy.ReasonLoop), "")
		return nil
	}
	if f.s.Names != nil {
		switch name, known, synthetic := f.s.Names.NameOf(dst.Addr()); {
		case synthetic && !known:
			f.refuseCaptured(because(policy.ReasonIPProhibited), "")
			return nil
		case synthetic:
			f.req.Host = name
			return f.named()
		}
	}
	return f.literal()
}

// fixed is the door of a listener that stands for one destination.
type fixed struct {
	host policy.Host
	port uint16
}

func (fixed) name() event.Door { return event.DoorTransparent }

func (d fixed) serve(ctx context.Context, c *conn) *tunnel {
	f := newFlow(ctx, c, d.name())
	f.req.Host, f.req.Port = d.host, d.port
	if no := f.authenticate(wire.Credentials{}); no != nil {
		f.refuseCaptured(no.d, no.detail)
		return nil
	}
	if !f.begin() {
		return nil
	}
	return f.named()
}

// destination reports the address that the client connected to.
func (s *Server) destination(c net.Conn) (netip.AddrPort, error) {
	find := socket.OriginalDst
	if s.originalDst != nil {
		find = s.originalDst
	}
	dst, err := find(c)
	return netip.AddrPortFrom(dst.Addr().Unmap().WithZone(""), dst.Port()), err
}

// named serves a connection whose destination is known before its first byte.
func (f *flow) named() *tunnel {
	if f.req.Port == portHTTP && f.c.over() == "" {
		// Denied or not, the requests are answered in HTTP, each with its own
		// event (and question to the person), unless the rule carries any
		// protocol.
		d := f.s.recordable(f.s.check(f.c, f.req))
		if d.Allowed() && d.Needs != policy.WireHTTP {
			return f.allowed(d)
		}
		sc := f.sc
		sc.host, sc.port = f.req.Host, f.req.Port
		f.s.serveHTTP(f.ctx, f.c, f.in, sc)
		return nil
	}
	d := f.s.judge(f.ctx, f.c, f.req)
	if !d.Allowed() {
		f.refuseCaptured(d, "")
		return nil
	}
	return f.allowed(d)
}

// literal serves a connection to an address that stands for no name. If no rule
// names the address, the name that the client's first bytes ask for is judged,
// resolved and dialled instead: never the address.
func (f *flow) literal() *tunnel {
	d := f.s.recordable(f.s.check(f.c, f.req))
	byRule := d.Allowed() && !d.Audit // an auditing policy still wants the name
	switch {
	case byRule && f.req.Port == portHTTPS && d.Needs == policy.WireTLS:
		return f.literalTLS(true)
	case byRule:
		return f.allowed(d)
	case !d.Audit && !notListed(d) && d.Reason != policy.ReasonIPProhibited:
		f.refuseCaptured(d, "") // a deny rule, overload, no policy: no name helps
	case f.req.Port == portHTTPS:
		return f.literalTLS(false)
	case f.req.Port == portHTTP:
		sc := f.sc
		sc.port, sc.captured = f.req.Port, true
		f.s.serveHTTP(f.ctx, f.c, f.in, sc)
	default:
		if d = f.s.ask(f.ctx, f.c, f.req, d); d.Allowed() {
			return f.allowed(d)
		}
		f.refuseCaptured(d, "")
	}
	return nil
}

// literalTLS judges the name in the ClientHello; without one, the address.
func (f *flow) literalTLS(addrAllowed bool) *tunnel {
	f.accepted = true
	if !f.awaitHello() {
		return nil
	}
	if f.req.SNI.Name() != "" && f.req.Wire == policy.WireTLS {
		byName := policy.Request{Host: f.req.SNI, Port: f.req.Port}
		if !addrAllowed || f.s.check(f.c, byName).Allowed() {
			f.req.Host = f.req.SNI
		}
	}
	d := f.s.judge(f.ctx, f.c, f.req)
	if !d.Allowed() {
		f.cut(d)
		return nil
	}
	return f.allowed(d)
}

// refuseCaptured denies a captured connection. A TLS client on port 443 gets an
// alert, for which its hello must be read first; others a reset at once.
func (f *flow) refuseCaptured(d policy.Decision, detail string) {
	switch f.req.Port {
	case portHTTP:
		f.door = unaware{}
	case portHTTPS:
		b := f.s.bounds()
		f.c.idle()
		_ = f.in.SetDeadline(time.Now().Add(f.c.patience(b.helloTimeout)))
		h, st, _ := peek.Hello(f.in, b.helloBytes) // whatever came: the answer is no
		f.hello(h, st)
	}
	f.refuse(d, detail)
}

// unaware speaks HTTP to a client that does not know that there is a proxy.
type unaware struct{}

// accept implements voice: there is nothing to say.
func (unaware) accept(*flow) error { return nil }

// deny implements voice. The client cannot be asked for credentials.
func (unaware) deny(f *flow, d policy.Decision, detail string) {
	den := denial.Response{Request: f.req, Decision: d, Detail: detail, Policy: f.s.PolicyName, Close: true}
	if d.Reason == policy.ReasonNotAuthenticated {
		den.Status = http.StatusForbidden
	}
	den.Send(f.in.Conn)
}

package proxy

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"time"

	"egressd/event"
	"egressd/policy"
)

// Ports whose protocol names the host it wants.
const (
	portHTTP  = 80
	portHTTPS = 443
)

// captured serves one connection that the capture rules sent here. own is the
// listener's address.
func (s *Server) captured(ctx context.Context, c *conn, own netip.AddrPort) {
	f := s.newCapturedFlow(ctx, c)
	dst, err := s.destination(c.Conn)
	if err != nil {
		f.refuse(because(policy.ReasonInternal), err.Error())
		return
	}
	f.sc.addr = dst
	c.onReset = func() { s.Resets.note(peer(c), dst, s.now()) }
	f.req = policy.Request{Host: policy.HostFromAddr(dst.Addr()), Port: dst.Port()}
	if no := f.settle(credentials{}); no != nil {
		f.refuseCaptured(no.d, no.detail)
		return
	}
	if !f.begin() {
		return
	}
	if dst == own || own.Addr().IsUnspecified() && dst.Port() == own.Port() && dst.Addr().IsLoopback() {
		f.refuse(because(policy.ReasonLoop), "")
		return
	}
	if f.s.Names != nil {
		switch name, known, synthetic := f.s.Names.NameOf(dst.Addr()); {
		case synthetic && !known:
			f.refuseCaptured(because(policy.ReasonIPProhibited), "")
			return
		case synthetic:
			f.req.Host = name
			f.named()
			return
		}
	}
	f.literal()
}

// fixed serves one connection to a listener that stands for h:port.
func (s *Server) fixed(ctx context.Context, c *conn, h policy.Host, port uint16) {
	f := s.newCapturedFlow(ctx, c)
	f.req.Host, f.req.Port = h, port
	if no := f.settle(credentials{}); no != nil {
		f.refuseCaptured(no.d, no.detail)
		return
	}
	if f.begin() {
		f.named()
	}
}

func (s *Server) newCapturedFlow(ctx context.Context, c *conn) *flow {
	return s.newFlow(ctx, c, event.DoorTransparent)
}

// destination reports where the client meant to connect to.
func (s *Server) destination(c net.Conn) (netip.AddrPort, error) {
	find := originalDst
	if s.originalDst != nil {
		find = s.originalDst
	}
	dst, err := find(c)
	return netip.AddrPortFrom(dst.Addr().Unmap().WithZone(""), dst.Port()), err
}

// named serves a connection whose destination is settled before its first
// byte.
func (f *flow) named() {
	if f.req.Port == portHTTP && visitOf(f.ctx).over() == "" {
		// Denied or not, the requests are answered in HTTP, each with its own
		// event (and question to the person); but where the rule carries any
		// protocol it is not HTTP's.
		d := f.s.look(f.ctx, f.req)
		if !d.Allowed() || d.Needs == policy.WireHTTP {
			sc := f.sc
			sc.host, sc.port = f.req.Host, f.req.Port
			f.s.serveHTTP(f.ctx, f.c, sc)
			return
		}
		f.allowed(d)
		return
	}
	d := f.s.judge(f.ctx, f.req)
	if !d.Allowed() {
		f.refuseCaptured(d, "")
		return
	}
	f.allowed(d)
}

// literal serves a connection to an address that stands for no name. Where no
// rule names the address, the name that the client's first bytes ask for is
// judged, resolved and dialled instead: never the address.
func (f *flow) literal() {
	d := f.s.look(f.ctx, f.req)
	byRule := d.Allowed() && !d.Audit // an auditing policy still wants the name
	switch {
	case byRule && f.req.Port == portHTTPS && d.Needs == policy.WireTLS:
		f.literalTLS(true)
	case byRule:
		f.allowed(d)
	case !d.Audit && !notListed(d) && d.Reason != policy.ReasonIPProhibited:
		f.refuseCaptured(d, "") // a deny rule, overload, no policy: no name helps
	case f.req.Port == portHTTPS:
		f.literalTLS(false)
	case f.req.Port == portHTTP:
		sc := f.sc
		sc.port, sc.captured = f.req.Port, true
		f.s.serveHTTP(f.ctx, f.c, sc)
	default:
		if d = f.s.ask(f.ctx, f.req, d); d.Allowed() {
			f.allowed(d)
			return
		}
		f.refuseCaptured(d, "")
	}
}

// literalTLS judges the name in the ClientHello; without one, the address.
func (f *flow) literalTLS(addrAllowed bool) {
	f.accepted = true
	if !f.awaitHello() {
		return
	}
	if f.req.SNI.Name() != "" && f.req.Wire == policy.WireTLS {
		byName := policy.Request{Host: f.req.SNI, Port: f.req.Port}
		if !addrAllowed || f.s.look(f.ctx, byName).Allowed() {
			f.req.Host = f.req.SNI
		}
	}
	d := f.s.judge(f.ctx, f.req)
	if !d.Allowed() {
		f.cut(d)
		return
	}
	f.allowed(d)
}

// refuseCaptured denies a captured connection. A TLS client on port 443 gets
// an alert, for which its hello must be read first; others a reset at once.
func (f *flow) refuseCaptured(d policy.Decision, detail string) {
	if f.req.Port == portHTTP {
		f.deny = f.denyCaptured
		f.refuse(d, detail)
		return
	}
	if f.req.Port == portHTTPS {
		b := f.s.bounds()
		v := visitOf(f.ctx)
		v.idle()
		_ = f.c.SetDeadline(time.Now().Add(v.patience(b.helloTimeout)))
		h, st, _ := readHello(f.c, b.helloBytes) // whatever came: the answer is no
		f.hello(h, st)
	}
	f.refuse(d, detail)
}

// denyCaptured answers a client that does not know that there is a proxy: it
// cannot be asked for credentials.
func (f *flow) denyCaptured(d policy.Decision, detail string) {
	den := denial{req: f.req, dec: d, detail: detail, policy: f.s.PolicyName, close: true}
	if d.Reason == policy.ReasonNotAuthenticated {
		den.status = http.StatusForbidden
	}
	den.send(f.c.Conn)
}

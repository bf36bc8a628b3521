package proxy

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"time"

	"egressd/event"
	"egressd/policy"
	"egressd/proxy/internal/admission"
	"egressd/proxy/internal/wire"
)

// flow is one client connection on its way through the looks. The door it came
// through gives it three voices: accept ("go on"), deny and nothing else.
type flow struct {
	s   *Server
	ctx context.Context
	c   *conn
	sc  scope
	req policy.Request

	// accept tells the client to go on; nil where there is nothing to say.
	accept func() error
	// deny says no in the door's words, before accept was called. It need not
	// close the connection. Nil: the connection is reset.
	deny func(d policy.Decision, detail string)

	under    *policy.Policy // in force when the looks began
	accepted bool
	raw      bool // nothing of it was looked at: a raw: rule
	helloLen int  // of the records that held the last ClientHello
}

// newFlow starts the looks at what arrived at door.
func (s *Server) newFlow(ctx context.Context, c *conn, door event.Door) *flow {
	return &flow{s: s, ctx: ctx, c: c, under: s.inForce(), sc: scope{door: door, flow: s.nextFlow(), client: peer(c)}}
}

// settle hands the flow to who judges it. Where that is nobody, the refusal is
// to be told to the client.
func (f *flow) settle(cr credentials) *refusal {
	v := visitOf(f.ctx)
	if v == nil {
		return nil
	}
	judge, no := v.settle(cr)
	if no != nil {
		return no
	}
	if judge != f.s {
		f.s, f.under, f.sc.flow = judge, judge.inForce(), judge.nextFlow()
	}
	return nil
}

// begin says that the client has said what it wants. False: it came too late
// and is refused.
func (f *flow) begin() bool {
	if visitOf(f.ctx).busy() {
		return true
	}
	f.refuse(because(policy.ReasonOverload), evictedDetail)
	return false
}

// What clients that lost their place are told.
const evictedDetail = "it took over a second to say what it wants while the gate was full, and made room for others"

// run takes the flow through its looks: name, addresses, what the client
// speaks; then dials and records. It closes the connection, or leaves it with a
// tunnel to carry.
func (f *flow) run() {
	if !f.begin() {
		return
	}
	d := f.s.judge(f.ctx, f.req)
	if !d.Allowed() {
		f.refuse(d, "")
		return
	}
	f.allowed(d)
}

// allowed goes on from a name that d allows.
func (f *flow) allowed(d policy.Decision) {
	addrs, ad := f.s.resolve(f.ctx, f.req)
	if !ad.Allowed() {
		f.refuse(ad, "")
		return
	}
	switch {
	case d.Verdict == policy.Intercept || d.Needs == policy.WireTLS:
		f.tls(addrs)
	case d.Needs == policy.WireHTTP:
		f.plainHTTP()
	case d.Needs == policy.WireOther:
		f.any(addrs, true)
	case d.Needs == policy.WireUnseen:
		f.raw = true
		f.any(addrs, false)
	default:
		f.refuse(because(policy.ReasonInternal), "")
	}
}

// yes says "go on", once.
func (f *flow) yes() bool {
	if f.accepted {
		return true
	}
	f.accepted = true
	if f.accept == nil {
		return true
	}
	_ = f.c.SetDeadline(time.Now().Add(writeTimeout)) // looking up and dialling took its time
	return f.accept() == nil
}

// tls serves a destination that must speak TLS with the judged name. The
// origin is dialled only after the ClientHello was judged.
func (f *flow) tls(addrs []netip.Addr) {
	if !f.yes() {
		f.report(because(policy.ReasonMalformed), "the client left before it was told to go on")
		_ = f.c.Close()
		return
	}
	if !f.awaitHello() || !f.begin() {
		return
	}
	d := f.s.judge(f.ctx, f.req)
	switch {
	case !d.Allowed():
		f.cut(d)
	case d.Verdict == policy.Intercept:
		_ = f.c.SetDeadline(time.Time{})
		sc := f.sc
		sc.host, sc.port, sc.tls = f.req.Host, f.req.Port, true
		f.s.serveIntercept(f.ctx, f.c, sc)
	default:
		f.dialAndRelay(addrs, false)
	}
}

// awaitHello waits for the client's first bytes and notes what they were;
// false: they did not come, and the flow is over.
func (f *flow) awaitHello() bool {
	b := f.s.bounds()
	visitOf(f.ctx).idle() // until begin
	_ = f.c.SetDeadline(time.Now().Add(b.helloTimeout))
	h, st, err := readHello(f.c, b.helloBytes)
	if err != nil && st == wire.More {
		reason, detail := f.readReason(err, policy.ReasonNotTLS)
		f.report(because(reason), detail)
		f.end()
		return false
	}
	f.hello(h, st)
	return true
}

// hello notes what the client's first bytes were.
func (f *flow) hello(h wire.Hello, st wire.State) {
	f.req.Wire, f.req.SNI = policy.WireBad, policy.Host{}
	switch st {
	case wire.Done:
		f.req.Wire, f.helloLen = policy.WireTLS, h.Len
		if h.ServerName == "" {
			return
		}
		name, err := policy.ParseHost(h.ServerName)
		if err != nil {
			f.req.Wire = policy.WireBad
			return
		}
		f.req.SNI = name
	case wire.Other:
		f.req.Wire = policy.WireOther
	}
}

// readHello reads until the client's first bytes are a ClientHello, or cannot
// become one. They stay held.
func readHello(c *conn, limit int) (wire.Hello, wire.State, error) {
	var scan wire.HelloScanner
	for {
		if len(c.held()) > 0 {
			if h, st := scan.Scan(c.held()); st != wire.More {
				return h, st, nil
			}
		}
		if err := c.more(limit); err != nil {
			if err == errTooLong {
				return wire.Hello{}, wire.Bad, nil
			}
			return wire.Hello{}, wire.More, err
		}
	}
}

// readReason is why a client that did not say all of what it wants is refused;
// broken is the reason where it ended or broke off by itself.
func (f *flow) readReason(err error, broken policy.Reason) (policy.Reason, string) {
	switch {
	case visitOf(f.ctx).isEvicted():
		return policy.ReasonOverload, evictedDetail
	case errors.Is(err, admission.ErrHeldTooMuch):
		return policy.ReasonOverload, err.Error()
	case errors.Is(err, os.ErrDeadlineExceeded):
		return policy.ReasonHeadTimeout, ""
	}
	return broken, ""
}

// plainHTTP serves a destination that must speak HTTP: every request is judged
// and recorded by the HTTP door.
func (f *flow) plainHTTP() {
	if !f.yes() {
		f.report(because(policy.ReasonMalformed), "the client left before it was told to go on")
		_ = f.c.Close()
		return
	}
	_ = f.c.SetDeadline(time.Time{})
	sc := f.sc
	sc.host, sc.port = f.req.Host, f.req.Port
	f.s.serveHTTP(f.ctx, f.c, sc)
}

// any serves a destination that may speak anything. It is dialled before the
// client is told to go on, because servers of many protocols speak first.
func (f *flow) any(addrs []netip.Addr, sniff bool) { f.dialAndRelay(addrs, sniff) }

// dialAndRelay connects, records, and tells the client to go on if that has not
// been done. Who has called the door carries the tunnel.
func (f *flow) dialAndRelay(addrs []netip.Addr, sniff bool) {
	up := f.s.dialAddrs(f.ctx, f.req, addrs)
	if up.c == nil {
		f.refuse(up.d, "")
		return
	}
	f.req.Addr = up.addr
	r := &relayed{f: f, up: up.c, req: f.req, d: up.d, limit: f.s.bounds().bytesPerFlow, sniff: sniff}
	// What the client speaks is looked at once it speaks: until then there is
	// no decision to record.
	if !sniff && !r.recordAllowed() {
		_ = up.c.Close()
		f.no(because(policy.ReasonOverload), "")
		return
	}
	if !f.yes() {
		_ = up.c.Close()
		_ = f.c.Close()
		r.recordAllowed() // the client left; what there was is on record
		return
	}
	_ = f.c.SetDeadline(time.Time{})
	f.c.tunnel = r
}

// refuse denies the flow: it is recorded, and the client is told in the
// door's words, or by an alert or a reset when it was told to go on already.
func (f *flow) refuse(d policy.Decision, detail string) {
	f.report(d, detail)
	f.no(d, f.overDetail(d, detail))
}

// overDetail names the limit where the connection is over one.
func (f *flow) overDetail(d policy.Decision, detail string) string {
	if d.Reason == policy.ReasonOverload && detail == "" {
		return visitOf(f.ctx).over()
	}
	return detail
}

func (f *flow) no(d policy.Decision, detail string) {
	if f.accepted || f.deny == nil {
		f.end()
		return
	}
	_ = f.c.SetDeadline(time.Now().Add(writeTimeout))
	f.deny(d, detail)
	linger(f.c)
}

// cut is refuse for a client that was told to go on and has sent TLS.
func (f *flow) cut(d policy.Decision) {
	f.report(d, "")
	f.end()
}

// end closes a client that was told to go on: with an alert where it speaks
// TLS, else with a reset, so that no bytes can be taken for an answer.
func (f *flow) end() {
	if f.req.Wire == policy.WireTLS || f.req.Wire == policy.WireBad {
		f.alert()
		return
	}
	reset(f.c)
}

// report records that the flow was denied. That it cannot be recorded changes
// nothing for the client: it is denied already.
func (f *flow) report(d policy.Decision, detail string) {
	detail = f.overDetail(d, detail)
	ev := f.s.decisionEvent(f.sc, f.req, d, "")
	ev.Error = clip(detail)
	if err := f.s.record(ev); err != nil {
		f.s.log().Error("a denial was not recorded", "err", err)
	}
}

// accessDenied is a fatal access_denied alert (RFC 8446 section 6.2), in a
// record of the version that every client reads.
var accessDenied = [...]byte{21, 3, 3, 0, 2, 2, 49}

// alert tells a TLS client that it may not, and closes.
func (f *flow) alert() {
	_ = f.c.SetDeadline(time.Now().Add(writeTimeout))
	_, _ = f.c.Conn.Write(accessDenied[:]) // the connection ends either way
	linger(f.c)
}

// linger closes c so that what was written last arrives: data of the client's
// that is still unread would turn the close into a reset that overtakes it.
func linger(c *conn) {
	c.release()
	if err := halfClose(c.Conn); err == nil {
		_ = c.Conn.SetReadDeadline(time.Now().Add(lingerTimeout))
		_, _ = io.CopyN(io.Discard, readOnly{c.Conn}, lingerBytes)
	}
	_ = c.Close()
}

// readOnly hides what else a connection can do from io.Copy.
type readOnly struct{ c net.Conn }

func (r readOnly) Read(p []byte) (int, error) { return r.c.Read(p) }

package proxy

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"time"

	"egressd/event"
	"egressd/event/phase"
	"egressd/policy"
	"egressd/proxy/internal/admission"
	"egressd/proxy/internal/exit"
	"egressd/proxy/internal/peek"
	"egressd/proxy/internal/wire"
)

// voice is how a door speaks to its client about one flow.
type voice interface {
	// accept tells the client to go on. An error: it is gone.
	accept(f *flow) error
	// deny tells the client no, before accept was called. It need not close the
	// connection.
	deny(f *flow, d policy.Decision, detail string)
}

// flow is one destination that a client asks for, on its way through the checks:
//
//	door      parses what the client wants, and finds the judge
//	run       judges the name, resolves it, judges the addresses
//	tls       reads the ClientHello and judges the name in it
//	open      dials a judged address, records the decision
//	tunnel    carries bytes, none before the decision is on record
//
// Whatever is denied on the way ends in refuse.
type flow struct {
	s   *Server // the judge
	ctx context.Context
	c   *conn        // the connection of the client
	in  *peek.Stream // what the client sends about this flow: c's own, or what is left of an HTTP connection
	sc  scope
	req policy.Request

	// door speaks to the client. Nil: there is nothing to say; a flow that is
	// denied is reset, after a word in SSH on port 22.
	door voice

	under    *policy.Policy // in force when the checks began
	accepted bool           // the client was told to go on
	raw      bool           // none of it is judged but name and address: a raw: rule
	helloLen int            // of the records that held the last ClientHello
}

// newFlow begins the checks of what arrived at door.
func newFlow(ctx context.Context, c *conn, door event.Door) *flow {
	s := c.front
	if judge := c.judgedBy(); judge != nil {
		s = judge
	}
	return &flow{s: s, ctx: ctx, c: c, in: &c.Stream, under: s.inForce(), sc: scope{door: door, flow: s.nextFlow(), client: c.client}}
}

// authenticate hands the flow to its judge. If there is none, the refusal is to be
// sent to the client.
func (f *flow) authenticate(cr wire.Credentials) *refusal {
	judge, no := f.c.authenticate(cr)
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
	if f.c.busy() {
		return true
	}
	f.refuse(because(policy.ReasonOverload), evictedDetail)
	return false
}

// run takes the flow through its checks. It reports the tunnel that is open
// then; nil: the flow has been refused or served.
func (f *flow) run() *tunnel {
	if !f.begin() {
		return nil
	}
	d := f.s.judge(f.ctx, f.c, f.req)
	if !d.Allowed() {
		f.refuse(d, "")
		return nil
	}
	return f.allowed(d)
}

// allowed goes on from a name that d allows: its addresses, then what the client
// speaks, as far as d wants that judged before the origin is dialled.
func (f *flow) allowed(d policy.Decision) *tunnel {
	way, ad := f.s.leaving(f.c).Find(f.ctx, f.under, f.req)
	f.sc.via, f.req.Addr = way.Via.String(), way.Refused
	if !ad.Allowed() {
		f.refuse(ad, way.Detail)
		return nil
	}
	switch {
	case d.Verdict == policy.Intercept || d.Needs == policy.WireTLS:
		return f.tls(way)
	case d.Needs == policy.WireHTTP:
		f.plainHTTP()
	case d.Needs == policy.WireOther:
		return f.open(way, true)
	case d.Needs == policy.WireUnseen:
		f.raw = true
		return f.open(way, false)
	default:
		f.refuse(because(policy.ReasonInternal), "")
	}
	return nil
}

// tls serves a destination that must speak TLS with the judged name. The
// origin is dialled only after the ClientHello was judged.
func (f *flow) tls(way exit.Way) *tunnel {
	if !f.goOn() || !f.awaitHello() || !f.begin() {
		return nil
	}
	d := f.s.judge(f.ctx, f.c, f.req)
	switch {
	case !d.Allowed():
		f.cut(d)
	case d.Verdict == policy.Intercept:
		_ = f.in.SetDeadline(time.Time{})
		sc := f.sc
		sc.host, sc.port, sc.tls = f.req.Host, f.req.Port, true
		f.s.serveIntercept(f.ctx, f.c, f.in, sc)
	default:
		return f.open(way, false)
	}
	return nil
}

// plainHTTP serves a destination that must speak HTTP: every request is judged
// and recorded by itself.
func (f *flow) plainHTTP() {
	if !f.goOn() {
		return
	}
	_ = f.in.SetDeadline(time.Time{})
	sc := f.sc
	sc.host, sc.port = f.req.Host, f.req.Port
	f.s.serveHTTP(f.ctx, f.c, f.in, sc)
}

// open takes the way out, records that, and tells the client to go on if
// that has not been done. sniff: what the client speaks is still to be judged;
// servers of many protocols speak first, so the origin is dialled before.
func (f *flow) open(way exit.Way, sniff bool) *tunnel {
	up := f.s.leaving(f.c).Dial(f.ctx, f.req, way)
	f.s.Took.Lasted(phase.Dial, f.sc.flow, up.Took)
	if up.Conn == nil {
		f.refuse(up.Decision, up.Detail)
		return nil
	}
	f.req.Addr = up.Addr
	t := newTunnel(f, up.Result, sniff)
	// Dialled is on record, whether or not a byte follows. What the client speaks may
	// be denied once it speaks: that is a second decision.
	if !t.recordAllowed() {
		_ = up.Conn.Close()
		f.no(because(policy.ReasonRecordUnavailable), "")
		return nil
	}
	if !f.accept() {
		_ = up.Conn.Close()
		_ = f.in.Close()
		t.ending.start = f.s.now()
		t.recordEnd() // the client left
		return nil
	}
	_ = f.in.SetDeadline(time.Time{})
	return t
}

// goOn is accept for a flow without an origin yet. False: the client is gone,
// which is on record.
func (f *flow) goOn() bool {
	if f.accept() {
		return true
	}
	f.report(because(policy.ReasonClientClosed), "before it was told to go on")
	_ = f.in.Close()
	return false
}

// accept tells the client to go on, once. False: it is gone.
func (f *flow) accept() bool {
	if f.accepted {
		return true
	}
	f.accepted = true
	if f.door == nil {
		return true
	}
	_ = f.in.SetDeadline(time.Now().Add(writeTimeout)) // looking up and dialling took its time
	return f.door.accept(f) == nil
}

// awaitHello waits for the client's first bytes and notes what they were;
// false: they did not come, and the flow is over.
func (f *flow) awaitHello() bool {
	b := f.s.bounds()
	f.c.idle() // until begin
	_ = f.in.SetDeadline(time.Now().Add(b.helloTimeout))
	h, st, err := peek.Hello(f.in, b.helloBytes)
	if err != nil && st == wire.More {
		broken := policy.ReasonNotTLS
		if len(f.in.Held()) == 0 {
			broken = policy.ReasonClientClosed
		}
		reason, detail := f.readReason(err, broken)
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

// readReason is why a client that did not say all of what it wants is refused;
// broken is the reason if it ended or broke off by itself.
func (f *flow) readReason(err error, broken policy.Reason) (policy.Reason, string) {
	switch {
	case f.c.isEvicted():
		return policy.ReasonOverload, evictedDetail
	case errors.Is(err, admission.ErrHeldTooMuch):
		return policy.ReasonOverload, err.Error()
	case errors.Is(err, os.ErrDeadlineExceeded):
		return policy.ReasonHeadTimeout, ""
	}
	return broken, ""
}

// refuse denies the flow: that is recorded, and the client gets the door's
// words, or an alert or a reset if it was told to go on already.
func (f *flow) refuse(d policy.Decision, detail string) {
	f.report(d, detail)
	f.no(d, f.overDetail(d, detail))
}

// overDetail names the limit that the connection is over, if any.
func (f *flow) overDetail(d policy.Decision, detail string) string {
	if d.Reason == policy.ReasonOverload && detail == "" {
		return f.c.over()
	}
	return detail
}

func (f *flow) no(d policy.Decision, detail string) {
	if !f.accepted && f.door == nil && f.req.Port == portSSH && f.speaksSSH() {
		f.door = ssh{}
	}
	if f.accepted || f.door == nil {
		f.end()
		return
	}
	_ = f.in.SetDeadline(time.Now().Add(writeTimeout))
	f.door.deny(f, d, detail)
	f.in.Linger()
}

// cut is refuse for a client that was told to go on and has sent TLS.
func (f *flow) cut(d policy.Decision) {
	f.report(d, "")
	f.end()
}

// end closes a client that was told to go on: with an alert if it speaks
// TLS, else with a reset, so that no bytes can be taken for an answer.
func (f *flow) end() {
	if f.req.Wire == policy.WireTLS || f.req.Wire == policy.WireBad {
		f.alert()
		return
	}
	f.in.Reset()
}

// report records that the flow was denied. If that cannot be recorded, nothing
// changes for the client: it is denied already.
func (f *flow) report(d policy.Decision, detail string) { f.s.deny(f.denial(d, detail)) }

// denial is the event of the denial d.
func (f *flow) denial(d policy.Decision, detail string) *event.Connection {
	ev := f.s.decisionEvent(f.sc, f.req, d, netip.AddrPort{})
	ev.Error = clip(f.overDetail(d, detail))
	return ev
}

// accessDenied is a fatal access_denied alert (RFC 8446 section 6.2), in a
// record of the version that every client reads.
var accessDenied = [...]byte{21, 3, 3, 0, 2, 2, 49}

// alert tells a TLS client that it may not, and closes.
func (f *flow) alert() {
	_ = f.in.SetDeadline(time.Now().Add(writeTimeout))
	_, _ = f.in.Conn.Write(accessDenied[:]) // the connection ends either way
	f.in.Linger()
}

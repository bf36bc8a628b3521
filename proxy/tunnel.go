package proxy

import (
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"egressd/event"
	"egressd/policy"
	"egressd/proxy/internal/dial"
	"egressd/proxy/internal/flows"
)

// tunnel is a flow that has its origin: bytes go both ways, and none goes before
// the decision is on record (way.Count).
type tunnel struct {
	f     *flow
	up    net.Conn
	req   policy.Request  // as it was when the origin was dialled
	d     policy.Decision // about req
	limit int64           // bytes, both ways together
	sniff bool            // the client's first bytes are still to be judged

	rec   event.OnRecord
	entry openFlow // among the flows that go on
	again *again   // nil: the client may send what it likes after its first bytes

	toOrigin, toClient way
	sum                atomic.Int64 // bytes of both
	ending             ending
}

// ending is how a tunnel comes to its end.
type ending struct {
	start   time.Time
	done    func()       // called at the very end
	open    atomic.Int32 // directions that have not ended
	aborted sync.Once
	why     atomic.Pointer[string] // why the Server ended it
}

// newTunnel is f over its connection up, which is not on record yet.
func newTunnel(f *flow, up dial.Result, sniff bool) *tunnel {
	return &tunnel{
		f: f, up: up.Conn, req: f.req, d: up.Decision, limit: f.s.bounds().bytesPerFlow, sniff: sniff,
		rec: f.s.onRecord(),
	}
}

// recordAllowed records that the origin was dialled. False: it could not be, and
// nothing may pass.
func (t *tunnel) recordAllowed() bool {
	return t.rec.Allow(t.f.s.stamp(
		t.f.s.decisionEvent(t.f.sc, t.req, t.d, netip.AddrPortFrom(t.req.Addr, t.req.Port)),
	))
}

// carry carries bytes both ways until both sides have ended, one of them
// fails, or the Server stops it; then it closes both, records that, and calls
// done. carry returns when the client's first bytes have been judged: from then
// on the relay engine carries the tunnel.
func (t *tunnel) carry(done func()) {
	s := t.f.s
	t.ending.start, t.ending.done = s.now(), done
	t.ending.open.Store(2)
	t.toOrigin = way{t: t, dst: t.up, src: t.f.in.Conn, total: &s.carried[out]}
	t.toClient = way{t: t, dst: t.f.in.Conn, src: t.up, total: &s.carried[in]}
	if !t.begins() {
		t.ending.open.Store(1) // nothing was started that would end
		t.ends()
		return
	}
	if t.again == nil {
		s.engine.Start(&t.toClient)
	} else {
		go t.originAnswers(t.again)
	}
	if !t.clientBegins() {
		t.ends()
		return
	}
	t.again = nil // nor does the tunnel need what is left of its set-up
	t.f.c.cancel()
	s.engine.Start(&t.toOrigin)
}

// carryAndWait is carry until the very end.
func (t *tunnel) carryAndWait() {
	ended := make(chan struct{})
	t.carry(func() { close(ended) })
	<-ended
}

// begins puts the flow on the list of those that go on. False: a bug has ended
// it.
func (t *tunnel) begins() bool {
	defer t.f.c.survive(t.abort)
	kind := flows.Tunnel
	if t.f.raw {
		kind = flows.Raw
	}
	t.entry = openFlow{Owner: t.f.c, Request: &t.req, Kind: kind, Bytes: &t.sum, Stop: t.stop}
	t.f.s.track(&t.entry, t.f.under)
	if t.watchesRetry() {
		t.again = newAgain()
	}
	return true
}

// clientBegins judges the client's first bytes and sends what is held. False:
// the flow was stopped.
func (t *tunnel) clientBegins() bool {
	defer t.f.c.survive(t.abort)
	if t.sniff && !t.firstBytes() {
		return false
	}
	if t.again != nil && t.f.req.Wire == policy.WireTLS && !t.secondHello() {
		return false
	}
	if !t.sendHeld(len(t.f.in.Held())) {
		return false
	}
	t.f.in.Release()
	return true
}

package proxy

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"egressd/event"
	"egressd/policy"
	"egressd/proxy/internal/relay"
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
func newTunnel(f *flow, up dialled, sniff bool) *tunnel {
	return &tunnel{
		f: f, up: up.c, req: f.req, d: up.d, limit: f.s.bounds().bytesPerFlow, sniff: sniff,
		rec: f.s.onRecord(),
	}
}

// recordAllowed records the decision, once. False: it could not be recorded or
// is no, and no byte may pass.
func (t *tunnel) recordAllowed() bool {
	return t.rec.Allowed() || t.rec.Allow(t.f.s.decisionEvent(t.f.sc, t.req, t.d, netip.AddrPortFrom(t.req.Addr, t.req.Port).String()))
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
	kind := flowTunnel
	if t.f.raw {
		kind = flowRaw
	}
	t.entry = openFlow{c: t.f.c, req: &t.req, kind: kind, bytes: &t.sum, stop: t.stop}
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
	if !t.sendHeld(len(t.f.in.held())) {
		return false
	}
	t.f.in.release()
	return true
}

// sendHeld sends the first n held bytes to the origin. False: the flow was
// stopped.
func (t *tunnel) sendHeld(n int) bool {
	if n == 0 {
		return true
	}
	if !t.toOrigin.send(t.f.in.held()[:n]) {
		return false
	}
	t.f.in.skip(n)
	return true
}

// ends is the end of one direction. The second one is the tunnel's.
func (t *tunnel) ends() {
	if t.ending.open.Add(-1) > 0 {
		return
	}
	defer t.ending.done()
	defer t.f.c.survive(nil)
	defer t.f.s.untrack(&t.entry)
	_ = t.up.Close()
	_ = t.f.in.Close()
	if t.recordAllowed() {
		t.recordEnd()
	}
}

func (t *tunnel) recordEnd() {
	f := t.f
	ev := event.Event{
		Type: event.NetworkClosed, Flow: f.sc.flow, Door: f.sc.door,
		Host: f.req.Host.String(), Port: f.req.Port,
		BytesOut: t.toOrigin.carried.Load(), BytesIn: t.toClient.carried.Load(),
		DurationMS: f.s.now().Sub(t.ending.start).Milliseconds(),
	}
	if why := t.ending.why.Load(); why != nil {
		ev.Error = *why
	} else {
		ev.Error = f.c.endedFor()
	}
	t.rec.End(f.s.stamp(ev))
}

// stop ends the flow from outside: both sides get a reset.
func (t *tunnel) stop(_ policy.Decision, why string) { t.cut(why) }

func (t *tunnel) cut(why string) {
	t.ending.why.CompareAndSwap(nil, &why)
	t.abort()
}

// abort resets both sides, once.
func (t *tunnel) abort() {
	t.ending.aborted.Do(func() {
		reset(t.up)
		t.f.in.reset()
	})
}

// way is one direction of a tunnel, as the relay engine sees it.
type way struct {
	t        *tunnel
	dst, src net.Conn
	carried  atomic.Int64
	total    *atomic.Uint64 // of the Server
}

// Src implements relay.Way.
func (w *way) Src() net.Conn { return w.src }

// Dst implements relay.Way.
func (w *way) Dst() net.Conn { return w.dst }

// Count adds n bytes that are about to be sent on and reports whether they may
// be: no byte passes before the decision is on record.
func (w *way) Count(n int64) bool {
	t := w.t
	if !t.recordAllowed() {
		t.cut("the flow could not be recorded")
		return false
	}
	w.carried.Add(n)
	w.total.Add(uint64(n))
	if t.sum.Add(n) > t.limit {
		t.cut(fmt.Sprintf("the flow carried more bytes than it may (bytes_per_flow: %d)", t.limit))
		return false
	}
	return true
}

// Ended passes the end of one direction on: a half-close as a half-close, a
// failure as a reset of both sides.
func (w *way) Ended(err error) {
	t := w.t
	defer t.ends()
	defer t.f.c.survive(t.abort)
	var bug *relay.Panic
	if errors.As(err, &bug) {
		t.f.c.panicked(bug.Value, bug.Stack)
	}
	if err != nil {
		t.abort()
		return
	}
	if err := halfClose(w.dst); err != nil && !errors.Is(err, syscall.ENOTCONN) {
		t.abort()
	}
}

// send counts p and writes it. False: the flow was stopped.
func (w *way) send(p []byte) bool {
	if w.Count(int64(len(p))) {
		if _, err := w.dst.Write(p); err == nil {
			return true
		}
	}
	w.t.abort()
	return false
}

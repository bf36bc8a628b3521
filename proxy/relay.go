package proxy

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"egressd/event"
	"egressd/policy"
	"egressd/proxy/internal/relay"
	"egressd/proxy/internal/wire"
)

// relayed is one flow being relayed. Its decision is recorded before the first
// byte goes either way.
type relayed struct {
	f     *flow
	up    net.Conn
	req   policy.Request  // as it was when the origin was dialled
	d     policy.Decision // about req
	limit int64           // bytes, both ways together
	sniff bool            // the client's first bytes are still to be judged

	start time.Time
	done  func()       // called at the very end
	open  atomic.Int32 // directions that have not ended

	toOrigin, toClient way
	sum                atomic.Int64 // bytes of both
	aborted            sync.Once
	why                atomic.Pointer[string] // why the gate ended it

	record   sync.Once
	recorded bool // written under record

	entry tracked // among the flows that go on

	again *again // nil: the client may send what it likes after its first bytes
}

// recordAllowed records the decision, once. False: it could not be recorded,
// and no byte may pass.
func (r *relayed) recordAllowed() bool {
	r.record.Do(func() {
		f := r.f
		ev := f.s.decisionEvent(f.sc, r.req, r.d, netip.AddrPortFrom(r.req.Addr, r.req.Port).String())
		if err := f.s.record(ev); err != nil {
			f.s.log().Error("a flow was not recorded and is denied", "err", err)
			// The refusal counts in the metrics, and is on record when there is room again.
			no := f.s.decisionEvent(f.sc, r.req, because(policy.ReasonOverload), "")
			no.Error = "the flow could not be recorded"
			_ = f.s.record(no) // as likely as not it fails, too
			return
		}
		r.recorded = true
	})
	return r.recorded
}

// carry carries bytes both ways until both sides have ended, one of them
// fails, or the gate stops it; then it closes both, records that, and calls
// done. It returns when the client's first bytes have been seen to: from then
// on there are two goroutines, which need little more than the stacks that they
// begin with.
func (r *relayed) carry(done func()) {
	r.start, r.done = r.f.s.now(), done
	r.open.Store(2)
	s := r.f.s
	r.toOrigin = way{r: r, dst: r.up, src: r.f.c.Conn, total: &s.carried[out]}
	r.toClient = way{r: r, dst: r.f.c.Conn, src: r.up, total: &s.carried[in]}
	if !r.begins() {
		r.open.Store(1) // nothing was started that would end
		r.ends()
		return
	}
	if r.again == nil {
		s.engine.Start(&r.toClient)
	} else {
		go r.originAnswers(r.again)
	}
	if !r.clientBegins() {
		r.ends()
		return
	}
	r.again = nil // nor does the tunnel need what is left of its set-up
	visitOf(r.f.ctx).setUp()
	s.engine.Start(&r.toOrigin)
}

// begins puts the flow on the list of those that go on. False: a bug has ended
// it.
func (r *relayed) begins() bool {
	defer r.f.s.survive(r.f.ctx, r.abort)
	kind := flowTunnel
	if r.f.raw {
		kind = flowRaw
	}
	r.entry = tracked{ctx: r.f.ctx, req: &r.req, kind: kind, bytes: &r.sum, stop: r.stop}
	r.f.s.track(&r.entry, r.f.under)
	if r.watchesRetry() {
		r.again = newAgain()
	}
	return true
}

// ends is the end of one direction. The second one is the tunnel's.
func (r *relayed) ends() {
	if r.open.Add(-1) > 0 {
		return
	}
	defer r.done()
	defer r.f.s.survive(r.f.ctx, nil)
	defer r.f.s.untrack(&r.entry)
	_ = r.up.Close()
	_ = r.f.c.Close()
	if r.recordAllowed() {
		r.recordClose()
	}
}

func (r *relayed) recordClose() {
	f := r.f
	ev := event.Event{
		Type: event.NetworkClosed, Flow: f.sc.flow, Door: f.sc.door,
		Host: f.req.Host.String(), Port: f.req.Port,
		BytesOut: r.toOrigin.carried.Load(), BytesIn: r.toClient.carried.Load(),
		DurationMS: f.s.now().Sub(r.start).Milliseconds(),
	}
	if why := r.why.Load(); why != nil {
		ev.Error = *why
	} else {
		ev.Error = visitOf(f.ctx).closedFor()
	}
	if err := f.s.record(ev); err != nil {
		f.s.log().Error("the end of a flow was not recorded", "err", err)
	}
}

// stop ends the flow from outside: both sides get a reset.
func (r *relayed) stop(_ policy.Decision, why string) { r.cut(why) }

func (r *relayed) cut(why string) {
	r.why.CompareAndSwap(nil, &why)
	r.abort()
}

// abort resets both sides, once.
func (r *relayed) abort() {
	r.aborted.Do(func() {
		reset(r.up)
		reset(r.f.c)
	})
}

// clientBegins looks at the client's first bytes and sends what is held. False:
// the flow was stopped.
func (r *relayed) clientBegins() bool {
	defer r.f.s.survive(r.f.ctx, r.abort)
	c := r.f.c
	if r.sniff && !r.firstBytes() {
		return false
	}
	if r.again != nil && r.f.req.Wire == policy.WireTLS && !r.secondHello() {
		return false
	}
	if !r.sendHeld(len(c.held())) {
		return false
	}
	c.release()
	return true
}

// sendHeld sends the first n held bytes to the origin. False: the flow was
// stopped.
func (r *relayed) sendHeld(n int) bool {
	if n == 0 {
		return true
	}
	if !r.toOrigin.send(r.f.c.held()[:n]) {
		return false
	}
	r.f.c.skip(n)
	return true
}

// way is one direction of r, as the relay engine sees it.
type way struct {
	r        *relayed
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
	r := w.r
	if !r.recordAllowed() {
		r.cut("the flow could not be recorded")
		return false
	}
	w.carried.Add(n)
	w.total.Add(uint64(n))
	if r.sum.Add(n) > r.limit {
		r.cut(fmt.Sprintf("the flow carried more bytes than it may (bytes_per_flow: %d)", r.limit))
		return false
	}
	return true
}

// Ended passes the end of one direction on: a half-close as a half-close, a
// failure as a reset of both sides.
func (w *way) Ended(err error) {
	r := w.r
	defer r.ends()
	defer r.f.s.survive(r.f.ctx, r.abort)
	var bug *relay.Panic
	if errors.As(err, &bug) {
		r.f.s.panicked(r.f.ctx, bug.Value, bug.Stack)
	}
	if err != nil {
		r.abort()
		return
	}
	if err := halfClose(w.dst); err != nil && !errors.Is(err, syscall.ENOTCONN) {
		r.abort()
	}
}

// send counts p and writes it. False: the flow was stopped.
func (w *way) send(p []byte) bool {
	if w.Count(int64(len(p))) {
		if _, err := w.dst.Write(p); err == nil {
			return true
		}
	}
	w.r.abort()
	return false
}

// firstBytes looks at the client's first bytes on a port that may carry anything:
// where they are TLS, their SNI must match. It holds nothing back that cannot
// become a ClientHello any more. False: the flow was stopped.
func (r *relayed) firstBytes() bool {
	f := r.f
	var scan wire.HelloScanner
	for timed := false; ; {
		if held := f.c.held(); len(held) > 0 {
			h, st := scan.Scan(held)
			switch st {
			case wire.Other:
				_ = f.c.SetReadDeadline(time.Time{})
				return true
			case wire.Done, wire.Bad:
				_ = f.c.SetReadDeadline(time.Time{})
				return r.judgeHello(h, st)
			}
			if !timed { // once: bytes that drip in do not extend it
				timed = true
				_ = f.c.SetReadDeadline(time.Now().Add(f.sniffTimeout(held)))
			}
		}
		if err := f.c.more(f.s.bounds().helloBytes); err != nil {
			return r.sniffEnd(err)
		}
	}
}

// tlsHandshake is the first byte of every ClientHello but SSLv2's.
const tlsHandshake = 22

// sniffTimeout is how long to wait for the rest of first bytes that may become
// a ClientHello. What may only become an SSLv2 one is not held for long.
func (f *flow) sniffTimeout(held []byte) time.Duration {
	if held[0] == tlsHandshake {
		return f.s.bounds().helloTimeout
	}
	return time.Second
}

// sniffEnd decides about a client that stopped before its first bytes were
// understood.
func (r *relayed) sniffEnd(err error) bool {
	f := r.f
	switch {
	case len(f.c.held()) == 0 && !errors.Is(err, io.EOF):
		r.abort()
		return false
	case len(f.c.held()) == 0 && errors.Is(err, io.EOF):
		return true // it never spoke: its half-close is passed on
	case f.c.held()[0] != tlsHandshake && (errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, io.EOF)):
		_ = f.c.SetReadDeadline(time.Time{})
		return true
	case errors.Is(err, errTooLong):
		return r.judgeHello(wire.Hello{}, wire.Bad)
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, io.EOF):
		return r.judgeHello(wire.Hello{}, wire.Bad)
	}
	r.abort()
	return false
}

// judgeHello takes the third look at a flow that is being relayed.
func (r *relayed) judgeHello(h wire.Hello, st wire.State) bool {
	f := r.f
	f.hello(h, st)
	d := f.s.judge(f.ctx, f.req)
	if d.Allowed() {
		return true
	}
	// Where the server spoke first, the flow is on record as allowed; that it
	// ends here is then a second decision about it.
	blocked := false
	r.record.Do(func() { blocked = true })
	f.report(d, "")
	if !blocked {
		why := "denied by its ClientHello: " + d.Reason.String()
		r.why.CompareAndSwap(nil, &why)
	}
	r.aborted.Do(func() { reset(r.up) })
	f.alert()
	return false
}

package proxy

import (
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"syscall"

	"egressd/event"
	"egressd/event/phase"
	"egressd/policy"
	"egressd/proxy/internal/relay"
	"egressd/proxy/internal/socket"
	"egressd/proxy/internal/stack"
)

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
	if !t.rec.Allowed() {
		t.cut("the flow could not be recorded")
		return false
	}
	if w.carried.Add(n) == n && w == &t.toClient {
		t.f.s.Took.Since(phase.FirstByte, t.f.sc.flow, t.ending.start)
	}
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
	if err := socket.HalfClose(w.dst); err != nil && !errors.Is(err, syscall.ENOTCONN) {
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

// sendHeld sends the first n held bytes to the origin. False: the flow was
// stopped.
func (t *tunnel) sendHeld(n int) bool {
	if n == 0 {
		return true
	}
	if !t.toOrigin.send(t.f.in.Held()[:n]) {
		return false
	}
	t.f.in.Skip(n)
	return true
}

// ends is the end of one direction. The second one is the tunnel's.
func (t *tunnel) ends() {
	if t.ending.open.Add(-1) > 0 {
		return
	}
	stack.Grow()
	defer t.ending.done()
	defer t.f.c.survive(nil)
	defer t.f.s.untrack(&t.entry)
	_ = t.up.Close()
	_ = t.f.in.Close()
	t.recordEnd()
}

// recordEnd records the end, if the beginning is on record.
func (t *tunnel) recordEnd() {
	f := t.f
	ev := &event.Close{
		Flow: f.sc.flow, Door: f.sc.door, Host: f.req.Host, Port: f.req.Port,
		BytesOut: t.toOrigin.carried.Load(), BytesIn: t.toClient.carried.Load(),
		Duration: f.s.now().Sub(t.ending.start),
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
		socket.Reset(t.up)
		t.f.in.Reset()
	})
}

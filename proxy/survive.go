package proxy

import (
	"fmt"
	"runtime/debug"

	"egressd/event"
	"egressd/policy"
)

// survive, deferred, is the one place where a panic ends: it costs the connection
// c, not the others. cleanup, if not nil, ends what the goroutine would have
// ended.
//
// Threat: one client finds input that makes the gate panic, and with it ends
// everybody's connections -> every goroutine that works for a connection
// defers this -> a panic with a lock held would block what needs the lock; the
// locks of this package are held around map and list operations alone.
func (c *conn) survive(cleanup func()) {
	r := recover()
	if r == nil {
		return
	}
	c.panicked(r, debug.Stack())
	if cleanup != nil {
		cleanup()
	}
}

// panicked reports r and ends the connection.
func (c *conn) panicked(r any, stack []byte) {
	s := c.judgedBy()
	if s == nil {
		s = c.front
	}
	ev := &event.Connection{Door: c.door, Client: c.client}
	c.end(bugDetail)
	s.reportBug(ev, r, stack)
}

// surviveTick is survive for what the Server does each second.
func (s *Server) surviveTick() {
	if r := recover(); r != nil {
		s.reportBug(&event.Connection{Door: event.DoorHTTP}, r, debug.Stack())
	}
}

// reportBug completes ev, writes it and logs the panic r.
func (s *Server) reportBug(ev *event.Connection, r any, stack []byte) {
	s.log().Error("a bug in the gate ended a connection", "panic", fmt.Sprint(r), "stack", string(stack))
	ev.Reason, ev.Error = policy.ReasonInternal, bugDetail // the zero Decision is Blocked
	defer func() {                                         // the sink may be what panicked
		if r := recover(); r != nil {
			s.log().Error("a bug was not recorded", "err", fmt.Errorf("the event sink panicked: %v", r))
		}
	}()
	s.deny(ev)
}

const bugDetail = "a bug in the gate ended this connection; its log has the details"

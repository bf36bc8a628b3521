package proxy

import (
	"context"
	"fmt"
	"runtime/debug"

	"egressd/event"
	"egressd/policy"
)

// survive, deferred, is the one place where a panic ends: it costs the one
// connection that ctx belongs to, not the others. cleanup, where not nil, ends
// what the goroutine would have ended.
//
// Threat: one client finds input that makes the gate panic, and with it ends
// everybody's connections -> every goroutine that works for a connection
// defers this -> a panic with a lock held would block what needs the lock; the
// locks of this package are held around map and list operations alone.
func (s *Server) survive(ctx context.Context, cleanup func()) {
	r := recover()
	if r == nil {
		return
	}
	s.panicked(ctx, r, debug.Stack())
	if cleanup != nil {
		cleanup()
	}
}

// panicked reports r and ends the connection.
func (s *Server) panicked(ctx context.Context, r any, stack []byte) {
	s.log().Error("a bug in the gate ended a connection", "panic", fmt.Sprint(r), "stack", string(stack))
	ev := event.Event{
		Type: event.NetworkConnected, Door: event.DoorHTTP, Decision: event.Blocked,
		Reason: policy.ReasonInternal.String(), Error: bugDetail,
	}
	v := visitOf(ctx)
	if v != nil {
		ev.Door = v.door
		if v.client.IsValid() {
			ev.Client = v.client.String()
		}
		v.close(bugDetail)
	}
	if err := s.recordCalmly(ev); err != nil {
		s.log().Error("a bug was not recorded", "err", err)
	}
}

const bugDetail = "a bug in the gate ended this connection; its log has the details"

// recordCalmly is record for a sink that may be what panicked.
func (s *Server) recordCalmly(ev event.Event) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the event sink panicked: %v", r)
		}
	}()
	return s.record(ev)
}

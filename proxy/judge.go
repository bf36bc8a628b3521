package proxy

import (
	"context"

	"egressd/event"
	"egressd/policy"
)

// judge asks the policy in force about r, and the person (Server.Ask) where no
// rule covers it. Every door and every look goes through here.
func (s *Server) judge(ctx context.Context, r policy.Request) policy.Decision {
	if s.Policy == nil {
		return policy.Decision{}
	}
	return s.Policy.Load().Decide(r)
}

// newFlow reports the next flow number, from 1.
func (s *Server) newFlow() uint64 { return s.flows.Add(1) }

// decisionEvent is the one place where a network.connected event is built.
// addr is what was dialled or captured, "" when nothing was.
func (s *Server) decisionEvent(sc scope, r policy.Request, d policy.Decision, addr string) event.Event {
	return event.Event{Type: event.NetworkConnected, Flow: sc.flow, Door: sc.door, Addr: addr}
}

// record writes ev with what all events of this gate share. An error means
// that the flow must be denied with policy.ReasonOverload.
func (s *Server) record(ev event.Event) error {
	if s.Events == nil {
		return errNoSink
	}
	return s.Events.Emit(ev)
}

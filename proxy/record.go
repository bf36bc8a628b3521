package proxy

import (
	"fmt"
	"net/netip"

	"egressd/event"
	"egressd/policy"
)

// clientStringBytes bounds every string of an event that a client chose.
const clientStringBytes = 1 << 10

// onRecord begins the record of one flow. No byte of it passes before its Allow
// has reported true.
func (s *Server) onRecord() event.OnRecord { return event.OnRecord{To: s.Events, Log: s.Log} }

// nextFlow reports the next flow number, from 1.
func (s *Server) nextFlow() uint64 { return s.flows.Add(1) }

// decisionEvent is the one place where the event of a decision is built. addr
// is what was dialled; zero when nothing was.
func (s *Server) decisionEvent(sc scope, r policy.Request, d policy.Decision, addr netip.AddrPort) *event.Connection {
	ev := &event.Connection{
		Flow: sc.flow, Door: sc.door, Verdict: event.Judged(d),
		Host: r.Host, Port: r.Port, Addr: addr, Client: sc.client,
		Via: sc.via, Method: clip(r.Method), Path: clip(r.Path),
	}
	for _, named := range [...]policy.Host{r.SNI, r.HTTPHost} {
		if named != r.Host && !named.IsZero() {
			ev.Server = named
		}
	}
	switch {
	case addr.IsValid():
	case r.Addr.IsValid() && d.Reason == policy.ReasonIPProhibited:
		ev.Addr = netip.AddrPortFrom(r.Addr, r.Port)
	default:
		ev.Addr = sc.addr
	}
	return ev
}

// stamp joins body with what all events of this Server share.
func (s *Server) stamp(body event.Body) event.Event {
	ev := event.Event{Time: s.now(), Session: s.Session, Isolation: s.Isolation, Body: body}
	if s.Policy != nil {
		ev.Policy = s.Policy.Load().Digest()
	}
	return ev
}

// deny records a denial that is not about a flow with a record of its own.
func (s *Server) deny(ev *event.Connection) {
	rec := s.onRecord()
	rec.Deny(s.stamp(ev))
}

// clip bounds a string that a client chose.
func clip(s string) string {
	if len(s) > clientStringBytes {
		return s[:clientStringBytes]
	}
	return s
}

// reportDrops writes one event for each kind of connection that ended without a
// word since the last time. Every sweeper calls it once a second.
func (s *Server) reportDrops() {
	for d, n := range s.drops.Take() {
		s.deny(&event.Connection{
			Door: d.Door, Verdict: event.Verdict{Reason: policy.ReasonOverload},
			Error: fmt.Sprintf("%d connections %s", n, d.Why),
		})
	}
}

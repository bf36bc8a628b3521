package proxy

import (
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

// decisionEvent is the one place where a network.connected event is built.
// addr is what was dialled or captured, "" when nothing was.
func (s *Server) decisionEvent(sc scope, r policy.Request, d policy.Decision, addr string) event.Event {
	ev := event.Event{
		Type: event.NetworkConnected, Flow: sc.flow, Door: sc.door,
		Decision: event.Blocked, Reason: d.Reason.String(), Audit: d.Audit,
		Host: r.Host.String(), Port: r.Port, Addr: addr,
		Method: clip(r.Method), Path: clip(r.Path),
	}
	if d.Allowed() {
		ev.Decision = event.Allowed
	}
	if d.Rule != nil {
		ev.Rule, ev.RulePos = d.Rule.Text, d.Rule.Pos.String()
	}
	for _, named := range [...]policy.Host{r.SNI, r.HTTPHost} {
		if named != r.Host && !named.IsZero() {
			ev.Server = named.String()
		}
	}
	if sc.client.IsValid() {
		ev.Client = sc.client.String()
	}
	if addr == "" && sc.addr.IsValid() {
		ev.Addr = sc.addr.String()
	}
	return s.stamp(ev)
}

// stamp fills in what all events of this Server share.
func (s *Server) stamp(ev event.Event) event.Event {
	ev.Session, ev.Isolation = s.Session, s.Isolation
	if ev.Time.IsZero() {
		ev.Time = s.now()
	}
	if s.Policy != nil {
		ev.Policy = s.Policy.Load().Digest()
	}
	return ev
}

// deny records a denial that is not about a flow with a record of its own.
func (s *Server) deny(ev event.Event) {
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

// Package live tells of each decision in one line, for a person who watches a run.
//
//	fmt.Print(live.Line(&e, paint)) // "": e decides nothing
package live

import (
	"fmt"
	"io"
	"net"
	"strconv"
	"time"

	"egressd/event"
	"egressd/internal/cli"
	"egressd/internal/cli/explain"
	"egressd/policy"
)

// Sink is an event sink that writes a line for each decision to W, which must not
// wait. Safe for concurrent use if W is.
type Sink struct {
	W     io.Writer
	Paint cli.Paint
	// Now is the time of events that have none yet.
	Now func() time.Time
}

// Emit implements [event.Sink]. It never fails.
func (s *Sink) Emit(e event.Event) error {
	if e.Time.IsZero() {
		e.Time = s.Now()
	}
	if line := Line(&e, s.Paint); line != "" {
		_, _ = io.WriteString(s.W, "launch: "+line+"\n") // who watches no longer, misses it
	}
	return nil
}

// Line says what was decided, without a line break; "" if e decides nothing. A name that
// may be asked for is no decision of its own: the connection to it is.
func Line(e *event.Event, paint cli.Paint) string {
	var v event.Verdict
	var place string
	var times int64
	why := ""
	switch b := e.Body.(type) {
	case *event.Connection:
		v, place, times = b.Verdict, target(b), b.Repeated
	case *event.Query:
		v, place, times = b.Verdict, b.Host.String()+b.Asked, b.Repeated
		if v.Decision == event.Allowed && !v.Audit {
			return ""
		}
		place += " (DNS)"
	case *event.Packet:
		v, _ = e.Verdict()
		place, times = b.Proto+" "+join(policy.HostFromAddr(b.Dst), b.Port), b.Count
	case *event.FileRefused:
		why, place, times = b.Reason.String(), b.Wanted.Key()+" "+b.Path, b.Count
	default:
		return ""
	}
	word := paint.Bad("blocked")
	switch {
	case v.Decision == event.Allowed && v.Audit:
		word, why = paint.Warn("audited"), explain.Meaning(v.Reason)
	case v.Decision == event.Allowed:
		word = paint.Good("allowed")
	case why != "":
		word = paint.Bad("refused") // a file
	case v.Reason == policy.ReasonClientClosed:
		word, why = paint.Faint("closed "), "by the client, before it said anything"
	case v.Reason.Class() == policy.ClassUpstream || v.Reason.Class() == policy.ClassTimeout:
		word, why = paint.Warn("failed "), explain.Meaning(v.Reason)
	default:
		why = explain.Meaning(v.Reason)
	}
	if v.Rule != nil && v.Reason == policy.ReasonDeniedByRule {
		why += ": " + cli.Safe(v.Rule.Text+" ("+v.Rule.Pos.String()+")")
	}
	if why != "" {
		why = ": " + why
	}
	if times > 1 {
		why += fmt.Sprintf(" (%d times)", times)
	}
	return e.Time.Local().Format(time.TimeOnly) + " " + word + " " + cli.Safe(place) + why
}

// target is what c asked for.
func target(c *event.Connection) string {
	h := c.Host
	if h.IsZero() {
		h = policy.HostFromAddr(c.Addr.Addr())
	}
	place := join(h, c.Port)
	if c.Method != "" {
		place = c.Method + " " + place + c.Path
	}
	return place
}

func join(h policy.Host, port uint16) string {
	switch {
	case h.IsZero():
		return "no name"
	case port == 0:
		return h.String()
	}
	return net.JoinHostPort(h.String(), strconv.Itoa(int(port)))
}

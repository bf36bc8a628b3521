// Package event is the audit trail: one event, one line of JSON.
//
// A door says what happened; a sink records it before the door acts on it:
//
//	w := &event.Writer{W: file}
//	err := w.Emit(event.Event{Session: id, Body: &event.Connection{
//		Door: event.DoorConnect, Verdict: event.Judged(decision),
//		Host: host, Port: 443, Client: client,
//	}})
//	if err != nil {
//		// not recorded: deny
//	}
//
// Decisions, reasons and addresses are types up to the encoder; only a line has
// words. [Writer] is the sink that never drops, [Fanout] joins sinks; Event.UnmarshalJSON
// reads an event back. A line is plain ASCII, whatever bytes a client put into
// it. docs/event.schema.json describes the lines; docs/events.md explains them.
package event

import "time"

// Sink receives events. Implementations are safe for concurrent use.
type Sink interface {
	// Emit records e. It returns once e is safely handed over (for the audit
	// writer: once the operating system has the line). An error means that e
	// was not recorded: the caller must deny the flow as policy.ReasonRecordUnavailable.
	//
	// A sink does not change e.Body, and does not keep it after Emit returns.
	Emit(e Event) error
}

// Event is one line of the audit trail: what every line says, and a body that
// depends on what happened.
type Event struct {
	Time      time.Time // the writer fills in a zero time
	Seq       uint64    // set by the writer; gaps mean loss
	Session   string    // the run
	Isolation string    // its tier: netns, advisory, ...
	Policy    string    // digest of the policy in force; "": none, or it does not matter
	Body      Body      // what happened. Nil encodes as an event of no type, which the schema refuses

	// WasAllowed says of a denial that the flow was on record as allowed before: it is
	// never summed up. No line says it.
	WasAllowed bool

	// Err and Settled are of an event in a batch, see [Fanout.EmitBatch]; no line says
	// them. Err is what Emit would have returned. Settled: a sink in front has done with
	// the event, and those behind leave it alone.
	Err     error
	Settled bool

	origin *origin // of a line that was read; nil: the writer's
}

// Boot reports which start of a program wrote the line that e was read from; "" if it
// was not read, or does not say.
func (e Event) Boot() string {
	if e.origin == nil {
		return ""
	}
	return e.origin.boot
}

// Type reports the word for what happened, such as "network.closed"; "" for an
// event without a body.
func (e Event) Type() string {
	if e.Body == nil {
		return ""
	}
	return e.Body.word()
}

// Verdict reports what was decided; ok is false for events that decide nothing.
func (e Event) Verdict() (v Verdict, ok bool) {
	switch b := e.Body.(type) {
	case *Connection:
		return b.Verdict, true
	case *Query:
		return b.Verdict, true
	case *Packet:
		return b.verdict(), true
	}
	return Verdict{}, false
}

// Allowed reports whether e is about a flow, a request or a query that may go
// on. The end of a flow allows nothing.
func (e Event) Allowed() bool {
	v, ok := e.Verdict()
	return ok && v.Decision == Allowed
}

// Body is what happened: one of the types of this package, by pointer. Strings
// in it may hold anything a client sent; encoding makes them safe.
type Body interface {
	word() string // the value of "type"
}

// Package eventtest is for tests of what emits events.
//
//	func (s *sink) Emit(e event.Event) error {
//		s.lines = append(s.lines, eventtest.Of(e))
//		return nil
//	}
//
// A test then compares the words of the record, not the types that made them.
// No shipping code imports this package; test/fence checks that.
package eventtest

import (
	"encoding/json"

	"egressd/event"
	"egressd/event/internal/line"
)

// Line is one event as a reader of the events file finds it: decoded JSON, all
// words still text. It decodes with encoding/json.
type Line = line.Line

// Of reports e as a reader of the file would find it. It panics when the line
// is not JSON, which is a bug of the encoder.
func Of(e event.Event) Line {
	data, err := e.MarshalJSON()
	if err != nil {
		panic(err)
	}
	var l Line
	if err := json.Unmarshal(data, &l); err != nil {
		panic(err)
	}
	return l
}

// Discard is a sink that records nothing and never fails.
//
// A gate with this sink keeps no audit trail: never use it outside tests.
type Discard struct{}

// Emit implements [event.Sink].
func (Discard) Emit(event.Event) error { return nil }

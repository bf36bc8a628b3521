package handover

import (
	"errors"

	"egressd/event"
)

// sinkPair sends the events of a handover to its launcher and to the daemon's
// record.
//
// Threat: a launcher stops reading, so that the daemon's record does not show how
// much its flows carried -> the record gets everything that happened, whether the
// launcher reads or not. Left over: an allowed flow that the launcher did not
// record is not in the record as allowed; it is denied, and recorded as denied.
type sinkPair struct{ launcher, record event.Sink }

// Unavailable reports whether the daemon cannot record.
func (p sinkPair) Unavailable() error { return event.Fanout{p.record}.Unavailable() }

// Emit implements event.Sink.
func (p sinkPair) Emit(e event.Event) error {
	err := p.launcher.Emit(e)
	if err != nil && e.Allowed() {
		return err
	}
	return errors.Join(err, p.record.Emit(e))
}

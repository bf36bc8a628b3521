package handover

import (
	"errors"

	"egressd/event"
)

// both is where the events of a session go: to its launcher, and to the
// daemon's record.
//
// Threat: a launcher stops reading, so that the daemon's record does not tell
// how much its flows carried -> the record is told of everything that happened,
// whether the launcher listens or not. Only an allowed flow that the launcher
// did not record never was: it is denied, and recorded as that.
type both struct{ launcher, record event.Sink }

// Emit implements event.Sink.
func (b both) Emit(e event.Event) error {
	err := b.launcher.Emit(e)
	if err != nil && e.Decision == event.Allowed {
		return err
	}
	return errors.Join(err, b.record.Emit(e))
}

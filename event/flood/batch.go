package flood

import (
	"errors"
	"time"

	"egressd/event"
)

// EmitBatch does with many events what Emit does, as [event.Fanout.EmitBatch] says.
func (r *Sink) EmitBatch(batch []event.Event) {
	now := time.Now()
	for i := range batch {
		e := &batch[i]
		if e.Settled {
			continue
		}
		if e.Time.IsZero() {
			e.Time = now
		}
		k, ok := denial(e)
		if !ok && !often(e.Body) {
			_ = r.Flush() // what is not written is kept
		}
		e.Settled = ok && !r.listed(&k, e)
	}
	event.Fanout{r.To}.EmitBatch(batch)
	for i := range batch {
		e := &batch[i]
		if e.Settled || !errors.Is(e.Err, event.ErrQuota) {
			continue
		}
		if k, ok := denial(e); ok && r.add(k, e) {
			e.Err = nil // as in Emit
		}
	}
}

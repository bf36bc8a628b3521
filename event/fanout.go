package event

import "slices"

// Fanout hands every event to each sink, in order. Put the sink that
// must not fail (the audit writer) first.
//
// When a sink fails, Emit reports its error. The caller then denies the flow,
// so the sinks behind it do not get an allowed flow that never was; a blocked
// one stays blocked, and all of them get it. The zero Fanout records nothing
// and reports no error.
type Fanout []Sink

// Emit implements [Sink].
func (f Fanout) Emit(e Event) error {
	var first error
	for _, s := range f {
		err := s.Emit(e)
		if err == nil {
			continue
		}
		if first == nil {
			first = err
		}
		if v, ok := e.Verdict(); !ok || v.Decision != Blocked {
			return first
		}
	}
	return first
}

// EmitBatch emits the events of batch that are not Settled, and sets their Err. The first
// sink gets all of them at once, if it has an EmitBatch itself; those behind it one after
// the other, whether or not the first has settled them.
func (f Fanout) EmitBatch(batch []Event) {
	if len(f) == 0 {
		return
	}
	if len(f) > 1 && slices.ContainsFunc(batch, func(e Event) bool { return e.Settled }) {
		for i := range batch { // later, nobody could tell who has settled what
			if e := &batch[i]; !e.Settled {
				e.Err = f.Emit(*e)
			}
		}
		return
	}
	emitBatch(f[0], batch)
	for _, s := range f[1:] {
		for i := range batch {
			e := &batch[i]
			if v, ok := e.Verdict(); e.Err != nil && (!ok || v.Decision != Blocked) {
				continue
			}
			if err := s.Emit(*e); e.Err == nil {
				e.Err = err
			}
		}
	}
}

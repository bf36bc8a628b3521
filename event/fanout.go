package event

// Fanout hands every event to each sink, in order. Put the sink whose word
// counts (the audit writer) first.
//
// When a sink fails, Emit reports its error. The caller then denies the flow,
// so the sinks behind it don't hear of an allowed flow that never was; a
// blocked one stays blocked and is told to all of them. The zero Fanout records
// nothing and reports no error.
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

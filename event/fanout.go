package event

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

package event

// batcher is a [Sink] that takes many events for the price of one write.
type batcher interface {
	Sink
	// EmitBatch does with every event that is not Settled what Emit does, in order, and
	// sets its Err. It keeps neither batch nor a body in it.
	EmitBatch(batch []Event)
}

func emitBatch(s Sink, batch []Event) {
	if b, ok := s.(batcher); ok {
		b.EmitBatch(batch)
		return
	}
	for i := range batch {
		if e := &batch[i]; !e.Settled {
			e.Err = s.Emit(*e)
		}
	}
}

// Each writes the decisions about flows that have no other, all at once, and keeps for
// each of them the promise of o, of which only To and Log count: an event whose Err is
// not nil is not on record, and its flow must not pass.
func (o *OnRecord) Each(batch []Event) {
	to := o.To
	if to == nil {
		to = nowhere{}
	}
	emitBatch(to, batch)
	for i := range batch {
		if e := &batch[i]; e.Err != nil {
			o.refuse(*e, e.Err)
		}
	}
}

// nowhere is where events go if there is no sink.
type nowhere struct{}

// Emit implements [Sink].
func (nowhere) Emit(Event) error { return errNoSink }

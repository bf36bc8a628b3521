package event

import (
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"

	"egressd/policy"
)

// OnRecord keeps one promise about one flow, request or question: no event, no
// flow. Whoever lets something pass asks Allow before the first byte, as often
// as it likes, and obeys:
//
//	if !rec.Allowed() && !rec.Allow(event) {
//		return errDenied // nothing has passed
//	}
//
// The decision is written once. What cannot be written is denied. Safe for
// concurrent use; the zero OnRecord denies everything. Do not copy it once it is
// used.
type OnRecord struct {
	To  Sink         // nil: nothing can be recorded
	Log *slog.Logger // what could not be recorded, at level error; nil discards

	mu    sync.Mutex // held while the decision is written
	state atomic.Uint32
}

// The states of an OnRecord. Only undecided changes.
const (
	undecided  = iota
	allowed    // with the sink
	denied     // whether or not the sink has it
	unrecorded // denied, since the sink did not take the event
)

var errNoSink = errors.New("no event sink: what cannot be recorded does not pass")

// notRecorded is the Error of refusals.
const notRecorded = "the flow could not be recorded"

// Allowed reports whether the flow is on record as allowed, without writing
// anything.
func (o *OnRecord) Allowed() bool { return o.state.Load() == allowed }

// Unrecorded reports whether the decision, allowed or not, could not be written.
func (o *OnRecord) Unrecorded() bool { return o.state.Load() == unrecorded }

// Allow writes e, the event of a flow that is allowed, unless a decision was
// written before. It reports whether the flow is on record as allowed. False:
// nothing may pass.
func (o *OnRecord) Allow(e Event) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.state.Load() != undecided {
		return o.Allowed()
	}
	o.state.Store(unrecorded) // also if the sink panics
	err := o.emit(e)
	if err == nil {
		o.state.Store(allowed)
		return true
	}
	o.refuse(e, err)
	return false
}

// refuse tells that e was not recorded, and writes the refusal of what it allowed. That
// counts in the metrics, and is in the trail when there is room again; it is as likely
// to fail as e.
func (o *OnRecord) refuse(e Event, err error) {
	if !e.Allowed() {
		o.log("a denial was not recorded", err)
		return
	}
	o.log("a flow was not recorded and is denied", err)
	e.Body = refusal(e.Body)
	_ = o.emit(e)
}

// refusal is what is written in place of allowed, which could not be.
func refusal(allowed Body) Body {
	switch b := allowed.(type) {
	case *Connection:
		no := *b
		no.Error = notRecorded
		no.unrecorded()
		return &no
	case *Query:
		no := *b
		no.RCode = ServFail
		no.unrecorded()
		return &no
	}
	return allowed // nothing else is allowed
}

// unrecorded turns v into the denial of what could not be recorded.
func (v *Verdict) unrecorded() { *v = Verdict{Reason: policy.ReasonRecordUnavailable} }

// Deny writes e, the event of a denial. Nothing passes after that, whether or not
// e could be written: a later Allow reports false. wasAllowed reports that the
// flow was on record as allowed before, so that this is a second decision.
func (o *OnRecord) Deny(e Event) (wasAllowed bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	wasAllowed = o.Allowed()
	e.WasAllowed = wasAllowed
	first := o.state.CompareAndSwap(undecided, denied)
	if err := o.emit(e); err != nil {
		o.log("a denial was not recorded", err)
		if first {
			o.state.Store(unrecorded)
		}
	}
	return wasAllowed
}

// End writes e, the end of the flow, if the flow is on record as allowed.
func (o *OnRecord) End(e Event) {
	if !o.Allowed() {
		return
	}
	if err := o.emit(e); err != nil {
		o.log("the end of a flow was not recorded", err)
	}
}

func (o *OnRecord) emit(e Event) error {
	if o.To == nil {
		return errNoSink
	}
	return o.To.Emit(e)
}

// log reports what was not recorded. A quota that is used up reports itself, once, and
// so does a Writer with a log; not with every flow that is denied.
func (o *OnRecord) log(what string, err error) {
	if o.Log != nil && !errors.Is(err, ErrQuota) && !errors.As(err, new(reportedError)) {
		o.Log.Error(what, "err", err) //nolint:sloglint // what is one of three constants of this file
	}
}

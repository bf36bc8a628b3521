package event

import (
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"egressd/policy"
)

// fussySink refuses events as its test says, and keeps the others.
type fussySink struct {
	refuse func(Event) error
	mu     sync.Mutex
	events []Event
}

func (s *fussySink) Emit(e Event) error {
	if s.refuse != nil {
		if err := s.refuse(e); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, e)
	return nil
}

var errFull = errors.New("full")

// allowedOnes refuses the events of what is allowed.
func allowedOnes(e Event) error {
	if e.Allowed() {
		return errFull
	}
	return nil
}

func TestOnRecord(t *testing.T) {
	v := Verdict{Decision: Allowed, Reason: policy.ReasonAllowed, Rule: &policy.Rule{Text: "a.example"}}
	yes := Event{Body: &Connection{Verdict: v}}
	no := Event{Body: &Connection{Verdict: Verdict{Reason: policy.ReasonNotTLS}}}
	end := Event{Body: new(Close)}
	t.Run("allowed once", func(t *testing.T) {
		var s fussySink
		rec := OnRecord{To: &s}
		if rec.Allowed() {
			t.Error("allowed before anything was written")
		}
		if first, again := rec.Allow(yes), rec.Allow(yes); !first || !again || !rec.Allowed() || rec.Unrecorded() {
			t.Error("a recorded flow may not pass")
		}
		if rec.End(end); len(s.events) != 2 {
			t.Errorf("%d events", len(s.events))
		}
	})
	t.Run("denied first", func(t *testing.T) {
		var s fussySink
		rec := OnRecord{To: &s}
		if rec.Deny(no) || rec.Allow(yes) || rec.Allowed() || rec.Unrecorded() {
			t.Error("a denied flow may pass")
		}
		if rec.End(end); len(s.events) != 1 {
			t.Errorf("%d events", len(s.events))
		}
	})
	t.Run("denied later", func(t *testing.T) {
		var s fussySink
		rec := OnRecord{To: &s}
		if !rec.Allow(yes) || !rec.Deny(no) {
			t.Error("the first decision is not known any more")
		}
		if rec.End(end); len(s.events) != 3 {
			t.Errorf("%d events", len(s.events))
		}
	})
	t.Run("not recorded", func(t *testing.T) {
		var log strings.Builder
		s := fussySink{refuse: allowedOnes}
		rec := OnRecord{To: &s, Log: slog.New(slog.NewTextHandler(&log, nil))}
		if rec.Allow(yes) || rec.Allowed() || !rec.Unrecorded() {
			t.Error("a flow passes that is not on record")
		}
		s.refuse = nil
		if rec.Allow(yes) {
			t.Error("a flow passes that was refused before")
		}
		rec.End(end)
		if len(s.events) != 1 {
			t.Fatalf("%+v", s.events)
		}
		e := s.events[0].Body.(*Connection)
		if e.Decision != Blocked || e.Reason != policy.ReasonRecordUnavailable || e.Rule != nil || e.Error == "" {
			t.Errorf("%+v", e)
		}
		if yes.Body.(*Connection).Decision != Allowed {
			t.Error("the caller's event was changed")
		}
		if text := log.String(); strings.Count(text, "level=ERROR") != 1 || !strings.Contains(text, "full") {
			t.Error(text)
		}
	})
	t.Run("no sink", func(t *testing.T) {
		var rec OnRecord
		if rec.Allow(yes) || rec.Deny(no) || !rec.Unrecorded() {
			t.Error("a flow passes that nobody records")
		}
		var other OnRecord
		if other.Deny(no) || !other.Unrecorded() || other.Allow(yes) {
			t.Error("a denial that nobody records is taken for recorded")
		}
	})
	t.Run("the sink panics", func(t *testing.T) {
		rec := OnRecord{To: &fussySink{refuse: func(Event) error { panic("a bug") }}}
		func() {
			defer func() { _ = recover() }()
			rec.Allow(yes)
		}()
		if rec.Allowed() || rec.Allow(yes) {
			t.Error("a flow passes that is not on record")
		}
	})
	t.Run("both directions at once", func(t *testing.T) {
		var s fussySink
		rec := OnRecord{To: &s}
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				if !rec.Allow(yes) {
					t.Error("a recorded flow may not pass")
				}
			})
		}
		if wg.Wait(); len(s.events) != 1 {
			t.Errorf("%d events", len(s.events))
		}
	})
}

func TestQuestionNotRecorded(t *testing.T) {
	v := Verdict{Decision: Allowed, Reason: policy.ReasonAllowed, Rule: &policy.Rule{Text: "a.example"}}
	s := fussySink{refuse: allowedOnes}
	rec := OnRecord{To: &s}
	if rec.Allow(Event{Body: &Query{Verdict: v, RCode: NoError}}) || len(s.events) != 1 {
		t.Fatalf("%+v", s.events)
	}
	if q := s.events[0].Body.(*Query); q.Decision != Blocked || q.Reason != policy.ReasonRecordUnavailable || q.Rule != nil || q.RCode != ServFail {
		t.Errorf("%+v", q)
	}
}

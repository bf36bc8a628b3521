package watch

import (
	"slices"
	"time"
)

// settler decides from what is seen when to report a change. It reads no clock.
type settler struct {
	reported []state // what was there when a change was last reported; nil: never
	pending  []state // what differs from it
	since    time.Time
	first    time.Time // when anything began to differ
}

// step takes what is seen now, and whether the kernel would have told of a
// change and of a writer. It says whether to report one, and when to look again
// at the latest.
func (s *settler) step(now time.Time, seen []state, told bool) (report bool, wait time.Duration) {
	poll, settle := pollUntold, settleUntold
	if told {
		poll, settle = pollTold, settleTime
	}
	if s.reported != nil && slices.EqualFunc(seen, s.reported, state.same) {
		s.pending, s.first = nil, time.Time{}
		return false, poll
	}
	if s.first.IsZero() {
		s.first = now
	}
	if s.pending == nil || !slices.Equal(seen, s.pending) {
		s.pending, s.since = slices.Clone(seen), now
	}
	doubt := s.doubtful(seen)
	if doubt {
		settle = doubtTime
	}
	quiet, unrest := now.Sub(s.since), now.Sub(s.first)
	if quiet >= settle || !doubt && unrest >= longestUnrest {
		s.reported, s.pending, s.first = s.pending, nil, time.Time{}
		return true, poll
	}
	wait = settle - quiet
	if !doubt {
		wait = min(wait, longestUnrest-unrest)
	}
	return false, min(wait, poll)
}

// doubtful reports whether a file that differs from what was reported looks as
// if somebody had not finished with it.
func (s *settler) doubtful(seen []state) bool {
	for i, f := range seen {
		if s.reported != nil && f.same(s.reported[i]) {
			continue
		}
		if f.writing || f.kind == missing || f.kind == regular && f.size == 0 {
			return true
		}
	}
	return false
}

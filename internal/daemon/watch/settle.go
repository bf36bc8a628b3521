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
	doubted  bool      // the last look found a file that may be unfinished
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
		s.pending, s.first, s.doubted = nil, time.Time{}, false
		return false, poll
	}
	if s.first.IsZero() {
		s.first = now
	}
	moved := s.pending == nil || !slices.Equal(seen, s.pending)
	if moved {
		s.pending, s.since = slices.Clone(seen), now
	}
	doubtedBefore := s.doubted
	if s.doubted = s.doubtful(seen); s.doubted {
		settle = doubtTime
	}
	// Files that change all the time never settle. They are reported on the way,
	// but not right behind a look that found one half-written.
	restless := moved && !s.doubted && !doubtedBefore && now.Sub(s.first) >= longestUnrest
	if quiet := now.Sub(s.since); quiet < settle && !restless {
		return false, min(settle-quiet, poll)
	}
	s.reported, s.pending, s.first, s.doubted = s.pending, nil, time.Time{}, false
	return true, poll
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

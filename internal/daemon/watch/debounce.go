package watch

import (
	"slices"
	"time"
)

// debouncer decides from scans when to report a change. It reads no clock.
type debouncer struct {
	alone    time.Duration // between two scans if the kernel reports nothing
	reported []state       // what was there when a change was last reported; nil: never
	pending  []state       // what differs from it
	since    time.Time
	first    time.Time // when anything began to differ
	doubted  bool      // the last scan found a file that may be unfinished
}

// step handles one scan. notified: the kernel reports changes and writers. It
// returns whether to report a change, and the longest time to the next scan.
func (s *debouncer) step(now time.Time, seen []state, notified bool) (report bool, wait time.Duration) {
	poll, enough := s.alone, quietAlone
	if notified {
		poll, enough = pollNotified, quietTime
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
		enough = doubtTime
	}
	// Files that change all the time never rest. They are reported meanwhile, but not
	// right after a scan that found one half-written.
	restless := moved && !s.doubted && !doubtedBefore && now.Sub(s.first) >= longestUnrest
	if quiet := now.Sub(s.since); quiet < enough && !restless {
		return false, min(enough-quiet, poll)
	}
	s.reported, s.pending, s.first, s.doubted = s.pending, nil, time.Time{}, false
	return true, poll
}

// doubtful reports whether a file that differs from what was reported may be
// unfinished.
func (s *debouncer) doubtful(seen []state) bool {
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

package event

import (
	"log/slog"
	"sync/atomic"
	"time"
)

// Implementation constants of what is left for each when a disk fills up.
const (
	lowSpace      = 64 << 20               // bytes free, at most: below, room is shared out
	lowPart       = 8                      // and at most this part of the file system
	measureEvery  = 100 * time.Millisecond // between looks at the file system, unless much was written
	measureMost   = 1 << 20                // bytes written between them, far from low space
	measureLeast  = 4 << 10                // and close to it
	defaultMinute = 60                     // seconds of Rate that Burst is by default
)

// share is one policy's part of a Writer: a sink whose Emit fails with [ErrQuota]
// when the policy has written what it may, while other shares go on.
//
// Threat: one tenant floods its record until the disk is full, and no other tenant's
// flow can be recorded any more -> each has its quota; and when the file system runs
// low (64 MiB, or an eighth of it, are free), what is left is shared out evenly, one
// part of it kept for the daemon itself, until there is room again. A line is at
// most some kilobytes over. Left over: what else writes to that file system; a
// tenant that stays below its quota and needs the rest of the disk over days; a
// writer that is no regular file, whose reader can only be waited for.
//
// Safe for concurrent use.
type share struct {
	rate, burst, total int64 // see Writer.Share

	log *slog.Logger
	w   *Writer

	// Writer.mu guards the rest.
	used int64   // bytes in this file
	debt float64 // bytes of Burst that are gone; they come back with time
	at   time.Time
	low  int64  // bytes since the file system runs low
	why  string // "": it may write

	changed atomic.Bool // why has changed, and the log has not heard of it
	out     atomic.Bool // why is not ""
}

// space is what is known of the file system that a Writer writes to. Writer.mu
// guards it.
type space struct {
	at      time.Time
	written int64 // bytes since
	next    int64 // and after which to look again
	low     bool
	each    int64 // bytes that each share may write while low
}

// Share makes a part of w for one policy or tenant, for good, and reports its sink.
// rate is how many bytes it may write a second in the long run, burst how many at
// once (zero: those of a minute at rate), total how many in one file: Reopen begins
// anew. Zero bounds nothing. Beyond, and when the file system runs low and the share
// has written its part of what was left, Emit fails with [ErrQuota]; other shares go
// on. log hears when that begins and ends; nil discards. exhausted reports why the
// share takes no event at the moment, in words; "" if it does. Call Share before the
// first Emit.
func (w *Writer) Share(rate, burst, total int64, log *slog.Logger) (sink Sink, exhausted func() string) {
	if burst <= 0 {
		burst = rate * defaultMinute
	}
	s := &share{rate: rate, burst: burst, total: total, log: log, w: w}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.shares = append(w.shares, s)
	return s, s.exhausted
}

// Emit implements [Sink].
func (s *share) Emit(e Event) error {
	err := s.w.emit(e, s)
	if s.changed.Swap(false) { // not under Writer.mu: a log may block
		s.tell()
	}
	return err
}

// EmitBatch implements batcher.
func (s *share) EmitBatch(batch []Event) {
	s.w.emitBatch(batch, s)
	if s.changed.Swap(false) {
		s.tell()
	}
}

// exhausted is the one that Share reports.
func (s *share) exhausted() string {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	if s.why == "" {
		return ""
	}
	return s.over(time.Now()) // it may have passed since the last event
}

// room reports whether the share may write a line now. w.mu is held, and is given
// up for a look at a file system that was full.
func (s *share) room(now time.Time) bool {
	why := s.over(now)
	if why == overLow && now.Sub(s.w.space.at) >= measureEvery {
		s.w.measureLocked(now)
		why = s.over(now)
	}
	if (why == "") != (s.why == "") {
		s.changed.Store(true)
	}
	s.why = why
	s.out.Store(why != "")
	return why == ""
}

// Why a share takes no event.
const (
	overTotal = "it has written its total into this file (--events-quota total)"
	overRate  = "it writes faster than it may (--events-quota rate)"
	overLow   = "the file system of the events file is nearly full, and it has written its part of what was left"
)

func (s *share) over(now time.Time) string {
	if s.rate > 0 {
		if passed := now.Sub(s.at).Seconds(); passed > 0 {
			s.debt, s.at = max(0, s.debt-passed*float64(s.rate)), now
		}
	}
	switch {
	case s.total > 0 && s.used >= s.total:
		return overTotal
	case s.w.space.low && s.low >= s.w.space.each:
		return overLow
	case s.rate > 0 && s.debt >= s.most():
		return overRate
	}
	return ""
}

// most is how much of Burst may be gone. A share that was over it waits for a tenth,
// so that it does not change with every line.
func (s *share) most() float64 {
	most := float64(s.burst)
	if s.why == overRate {
		most *= 0.9
	}
	return most
}

// tell logs what has changed.
func (s *share) tell() {
	if s.log == nil {
		return
	}
	if why := s.exhausted(); why != "" {
		s.log.Error("the events quota is used up: this policy's flows are denied, others are not", "why", why)
	} else {
		s.log.Warn("there is room in the events quota again: this policy's flows are recorded and allowed")
	}
}

// wrote books n bytes; negative ones were not written after all. w.mu is held.
func (s *share) wrote(n int) {
	if s == nil {
		return
	}
	s.used += int64(n)
	s.debt += float64(n)
	s.low += int64(n)
}

// measureLocked looks how much room there is, and shares it out if that is little.
// w.mu is held, and given up meanwhile: a network file system may take its time.
func (w *Writer) measureLocked(now time.Time) {
	w.space.at, w.space.written = now, 0
	if len(w.shares) == 0 {
		return
	}
	out := w.W
	w.mu.Unlock()
	free, size, ok := freeSpace(out)
	w.mu.Lock()
	mark := min(lowSpace, size/lowPart)
	low := ok && free < mark
	w.space.next = measureMost
	if ok && !low {
		w.space.next = int64(min(measureMost, max(measureLeast, (free-mark)/2))) // #nosec G115 -- bounded
	}
	if low == w.space.low {
		return
	}
	w.space.low = low
	w.space.each = int64(free) / int64(len(w.shares)+1) // #nosec G115 -- below lowSpace
	for _, s := range w.shares {
		s.low = 0
	}
}

// begunAnew forgets what was written to the file before. w.mu is held.
func (w *Writer) begunAnew() {
	w.space = space{}
	w.files.sized = false
	for _, s := range w.shares {
		s.used, s.low = 0, 0
	}
}

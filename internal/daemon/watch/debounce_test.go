package watch

import (
	"testing"
	"time"
)

// moment is one scan, at ms milliseconds.
type moment struct {
	ms     int
	seen   state
	report bool
}

func file(ino, size int) state {
	return state{kind: regular, ino: uint64(ino), size: int64(size), ctime: int64(ino*1000 + size)}
}

func open(s state) state { s.writing = true; return s }

func TestSettle(t *testing.T) {
	old, next, gone, empty := file(1, 10), file(2, 20), state{kind: missing}, file(1, 0)
	for _, tt := range []struct {
		name     string
		notified bool
		scans    []moment
	}{
		{"the start is reported once", true, []moment{{0, old, false}, {99, old, false}, {100, old, true}, {200, old, false}, {9000, old, false}}},
		{"a rename", true, []moment{{0, old, false}, {100, old, true}, {1000, next, false}, {1050, next, false}, {1100, next, true}, {1200, next, false}}},
		{"longer where nobody tells", false, []moment{{0, old, false}, {100, old, false}, {200, old, true}, {1000, next, false}, {1199, next, false}, {1200, next, true}}},
		{"a change on the way starts again", true, []moment{{0, old, false}, {100, old, true}, {1000, file(1, 11), false}, {1090, file(1, 12), false}, {1110, file(1, 12), false}, {1190, file(1, 12), true}}},
		{"back and forth is a change", true, []moment{{0, old, false}, {100, old, true}, {1000, next, false}, {1010, file(3, 10), false}, {1110, file(3, 10), true}}},
		{"back to the very same is none", true, []moment{{0, old, false}, {100, old, true}, {1000, next, false}, {1010, old, false}, {1200, old, false}, {1300, next, false}, {1390, next, false}, {1400, next, true}}},
		{"emptied, then filled", true, []moment{{0, old, false}, {100, old, true}, {1000, empty, false}, {1500, empty, false}, {2900, empty, false}, {2950, next, false}, {3050, next, true}}},
		{"emptied for good", true, []moment{{0, old, false}, {100, old, true}, {1000, empty, false}, {2999, empty, false}, {3000, empty, true}, {4000, empty, false}}},
		{"deleted for good", true, []moment{{0, old, false}, {100, old, true}, {1000, gone, false}, {2999, gone, false}, {3000, gone, true}, {9000, gone, false}, {9500, next, false}, {9600, next, true}}},
		{"deleted and made again", true, []moment{{0, old, false}, {100, old, true}, {1000, gone, false}, {1200, next, false}, {1300, next, true}}},
		{"written slowly", true, []moment{{0, old, false}, {100, old, true}, {1000, open(file(1, 1)), false}, {2000, open(file(1, 2)), false}, {3500, open(file(1, 3)), false}, {3600, file(1, 3), false}, {3700, file(1, 3), true}}},
		{"a writer that never closes", true, []moment{{0, old, false}, {100, old, true}, {1000, open(next), false}, {2999, open(next), false}, {3000, open(next), true}, {3100, next, false}}},
		{"no rest at all", true, []moment{{0, old, false}, {100, old, true}, {1000, file(2, 1), false}, {1090, file(3, 1), false}, {1180, file(4, 1), false}, {1270, file(5, 1), false}, {1499, file(6, 1), false}, {1500, file(7, 1), true}, {1510, file(8, 1), false}, {2009, file(9, 1), false}, {2010, file(10, 1), true}}},
		{"no rest, and half-written at the time", true, []moment{{0, old, false}, {100, old, true}, {1000, file(2, 1), false}, {1500, empty, false}, {1510, file(3, 1), false}, {1520, file(4, 1), true}}},
		{"missing from the start", true, []moment{{0, gone, false}, {1999, gone, false}, {2000, gone, true}, {3000, old, false}, {3100, old, true}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := debouncer{alone: pollAlone}
			start := time.Unix(1e9, 0)
			for _, m := range tt.scans {
				report, wait := s.step(start.Add(time.Duration(m.ms)*time.Millisecond), []state{m.seen}, tt.notified)
				if report != m.report {
					t.Errorf("at %d ms: report is %v", m.ms, report)
				}
				resting := pollAlone
				if tt.notified {
					resting = pollNotified
				}
				if wait <= 0 || wait > resting || s.pending != nil && wait > doubtTime || s.pending == nil && wait != resting {
					t.Errorf("at %d ms: the next scan is in %v", m.ms, wait)
				}
			}
		})
	}
}

// One file in doubt holds the report of all back; one that has been in doubt
// and reported does not.
func TestSettleSeveral(t *testing.T) {
	s := debouncer{alone: pollAlone}
	at := func(ms int, want bool, seen ...state) {
		t.Helper()
		if report, _ := s.step(time.Unix(0, 0).Add(time.Duration(ms)*time.Millisecond), seen, true); report != want {
			t.Errorf("at %d ms: report is %v", ms, report)
		}
	}
	a, b, gone := file(1, 1), file(2, 2), state{kind: missing}
	at(0, false, a, b)
	at(100, true, a, b)
	at(1000, false, file(3, 3), gone)
	at(1600, false, file(3, 3), gone)
	at(1700, false, file(3, 3), file(4, 4))
	at(1800, true, file(3, 3), file(4, 4))
	at(3000, false, file(3, 3), gone)
	at(5000, true, file(3, 3), gone)
	at(6000, false, a, gone)
	at(6100, true, a, gone)
}

package journal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"egressd/event"
	"egressd/policy"
)

// store is one whose time the test sets.
func store(t *testing.T) (Store, *time.Time) {
	t.Helper()
	now := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	return Store{Dir: filepath.Join(t.TempDir(), "runs"), Now: func() time.Time { return now }}, &now
}

func begin(t *testing.T, s Store, session string) *Entry {
	t.Helper()
	e, err := s.Begin(Head{Session: session, Program: "curl"})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func blocked(port uint16) event.Event {
	return event.Event{Body: &event.Connection{Port: port, Verdict: event.Verdict{Reason: policy.ReasonHostNotListed}}}
}

func TestRecord(t *testing.T) {
	s, now := store(t)
	e := begin(t, s, "ABCDEFGH")
	for port := range uint16(3) {
		if err := e.Emit(blocked(port)); err != nil {
			t.Fatal(err)
		}
	}
	r, err := s.Find(Last)
	if err != nil || !r.Going || r.Ending != nil {
		t.Fatalf("%+v, %v", r, err)
	}
	*now = now.Add(time.Second)
	if err := e.End(Ending{ExitCode: 7, Blocked: 3}); err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{Last, "abcdef", "ab", "AB", "ABCDEFGH"} {
		if r, err = s.Find(word); err != nil || r.Going || r.Ending == nil || r.Ending.ExitCode != 7 || r.Ending.DurationMS != 1000 || r.Ending.Lost != 0 {
			t.Fatalf("%s: %+v, %v", word, r, err)
		}
	}
	n := 0
	if err := r.Follow(t.Context(), func(line []byte) error {
		var e event.Event
		n++
		return json.Unmarshal(line, &e)
	}); err != nil || n != 3 {
		t.Errorf("%d events, %v", n, err)
	}
	for _, end := range []string{eventsEnd, headEnd} {
		info, err := os.Stat(e.name + end)
		if err != nil || info.Mode() != 0o600 {
			t.Errorf("%v, %v", info, err)
		}
	}
	if _, err := s.Find("x"); err == nil {
		t.Error("found what is not there")
	}
}

// What is written while somebody follows is followed to its end.
func TestFollow(t *testing.T) {
	s, _ := store(t)
	e := begin(t, s, "ABCDEFGH")
	r, err := s.Find(Last)
	if err != nil {
		t.Fatal(err)
	}
	_ = e.Emit(blocked(0))
	n := uint16(0)
	err = r.Follow(t.Context(), func([]byte) error {
		if n++; n < 5 {
			return e.Emit(blocked(n))
		}
		if n == 5 {
			return e.End(Ending{})
		}
		return nil
	})
	if err != nil || n != 5 {
		t.Errorf("%d events, %v", n, err)
	}
	stop := errors.New("enough")
	if err := r.Follow(t.Context(), func([]byte) error { return stop }); !errors.Is(err, stop) {
		t.Error(err)
	}
	going := begin(t, s, "HGFEDCBA")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r, err = s.Find("hgf"); err != nil {
		t.Fatal(err)
	}
	if err := r.Follow(ctx, func([]byte) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := going.Drop(); err != nil {
		t.Error(err)
	}
}

// A program that makes decisions without end fills neither disk nor memory, and the
// run goes on.
func TestOneRunIsBounded(t *testing.T) {
	s, _ := store(t)
	e := begin(t, s, "ABCDEFGH")
	path := "/" + strings.Repeat("x", 4000)
	for range 3 * maxRun / len(path) {
		v := event.Verdict{Decision: event.Allowed, Reason: policy.ReasonAllowed}
		if err := e.Emit(event.Event{Body: &event.Connection{Verdict: v, Port: 443, Method: "GET", Path: path}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.End(Ending{}); err != nil {
		t.Fatal(err)
	}
	r, err := s.Find(Last)
	if err != nil || r.size > maxRun || r.Ending.Lost == 0 {
		t.Errorf("%d bytes, %+v, %v", r.size, r.Ending, err)
	}
}

// Some endings look at all runs, and each after a long record.
func TestPruneIsDue(t *testing.T) {
	s, _ := store(t)
	due := 0
	for i := range 64 {
		e := begin(t, s, fmt.Sprintf("P%05d", i))
		if e.pruneDue() {
			due++
		}
		if err := e.End(Ending{}); err != nil {
			t.Fatal(err)
		}
	}
	if due == 0 || due > 16 {
		t.Errorf("%d of 64 endings look at all runs", due)
	}
	e := begin(t, s, "LONG23456")
	if err := e.file.Truncate(pruneAfter + 1); err != nil || !e.pruneDue() {
		t.Errorf("a long record: %v, due %v", err, e.pruneDue())
	}
	if err := e.End(Ending{}); err != nil {
		t.Fatal(err)
	}
}

func TestStoreIsBounded(t *testing.T) {
	const most = 12
	s, now := store(t)
	s.most, s.oneIn = most, 1
	old := begin(t, s, "OLD234567")
	going := begin(t, s, "GOING2345")
	if err := old.End(Ending{}); err != nil {
		t.Fatal(err)
	}
	*now = now.Add(MaxAge + time.Second)
	for i := range most + 3 {
		*now = now.Add(time.Second)
		if err := begin(t, s, fmt.Sprintf("R%05d", i)).End(Ending{}); err != nil {
			t.Fatal(err)
		}
	}
	runs, err := s.List()
	if err != nil || len(runs) != most+1 || runs[0].ID != fmt.Sprintf("r%05d", most+2) || runs[most].ID != "going2" {
		t.Errorf("%d runs, %v", len(runs), err)
	}
	if _, err := s.Find("r0"); err == nil || !strings.Contains(err.Error(), "write more") {
		t.Error(err)
	}
	if err := going.End(Ending{}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Find("going2"); err == nil {
		t.Error("it is kept for longer than a run may be")
	}
	for _, r := range runs {
		if err := os.Truncate(r.path, MaxBytes/4); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
	}
	half := filepath.Join(s.Dir, "20260101T000000Z-killed.jsonl.new")
	if err := os.WriteFile(half, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(half, time.Time{}, now.Add(-2*leftFor)); err != nil {
		t.Fatal(err)
	}
	if err := s.prune(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(half); err == nil {
		t.Error("a record that did not begin is left")
	}
	if runs, err = s.List(); err != nil || len(runs) != 4 {
		t.Errorf("%d runs, %v", len(runs), err)
	}
}

// Threat: a directory that others may write holds what they want the person to read.
func TestForeign(t *testing.T) {
	s, _ := store(t)
	if err := os.Mkdir(s.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(s.Dir, 0o770); err != nil { // #nosec G302 -- that is what is refused
		t.Fatal(err)
	}
	if _, err := s.Begin(Head{Session: "ABCDEFGH"}); err == nil {
		t.Error("recorded where others may write")
	}
	if _, err := s.List(); err == nil {
		t.Error("listed what others may write")
	}
	if err := os.Remove(s.Dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(t.TempDir(), s.Dir); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Begin(Head{Session: "ABCDEFGH"}); err == nil {
		t.Error("recorded behind a link")
	}
}

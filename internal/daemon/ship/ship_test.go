package ship

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// sink is a receiver that remembers.
type sink struct {
	got  []string
	fail func(lines [][]byte) error // nil: takes all
}

func (s *sink) send(_ context.Context, lines [][]byte) error {
	if s.fail != nil {
		if err := s.fail(lines); err != nil {
			return err
		}
	}
	for _, l := range lines {
		s.got = append(s.got, string(l))
	}
	return nil
}

type spool struct {
	dir, events string
	out         *os.File
	n           int
}

func newSpool(t *testing.T) *spool {
	t.Helper()
	s := &spool{dir: t.TempDir()}
	s.events = filepath.Join(s.dir, "events.jsonl")
	s.open(t)
	t.Cleanup(func() { _ = s.out.Close() })
	return s
}

func (s *spool) open(t *testing.T) {
	t.Helper()
	var err error
	if s.out, err = os.OpenFile(s.events, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
		t.Fatal(err)
	}
}

// write appends lines, each with a number of its own.
func (s *spool) write(t *testing.T, lines int) {
	t.Helper()
	for range lines {
		s.n++
		if _, err := fmt.Fprintf(s.out, "{\"boot\":\"b\",\"seq\":%d}\n", s.n); err != nil {
			t.Fatal(err)
		}
	}
}

// rotate puts the file away as name, and begins a new one.
func (s *spool) rotate(t *testing.T, name string) {
	t.Helper()
	if err := errors.Join(s.out.Close(), os.Rename(s.events, filepath.Join(s.dir, name))); err != nil {
		t.Fatal(err)
	}
	s.open(t)
}

func (s *spool) ship(t *testing.T, to *sink, log *strings.Builder) {
	t.Helper()
	if log == nil {
		log = new(strings.Builder)
	}
	x := Shipper{Events: s.events, State: s.events + ".shipped", Send: to.send, Log: slog.New(slog.NewTextHandler(log, nil))}
	if err := x.Run(t.Context(), true); err != nil {
		t.Fatal(err)
	}
}

// whole checks that every line came, in order, and once.
func (s *spool) whole(t *testing.T, got []string) {
	t.Helper()
	for i := range s.n {
		if want := fmt.Sprintf("{\"boot\":\"b\",\"seq\":%d}", i+1); i >= len(got) || got[i] != want {
			t.Fatalf("line %d of %d is not %s: %.3q", i, len(got), want, got[min(i, len(got)):])
		}
	}
	if len(got) != s.n {
		t.Errorf("%d lines, want %d", len(got), s.n)
	}
}

// Every line arrives once, in order, over starts and rotations of both kinds, also of
// several files at a time; half a line waits for its end.
func TestRotations(t *testing.T) {
	s, to := newSpool(t), new(sink)
	s.write(t, 3)
	s.ship(t, to, nil)
	s.whole(t, to.got)
	s.write(t, maxLines+7)
	s.rotate(t, "events.jsonl.20261123T031500Z-000007")
	s.write(t, 5)
	s.ship(t, to, nil)
	s.whole(t, to.got)
	for i := range 3 {
		s.write(t, 4)
		s.rotate(t, fmt.Sprintf("events.jsonl.20261123T031501Z-%06d", 8+i))
	}
	s.ship(t, to, nil) // the new file is empty
	s.whole(t, to.got)
	s.write(t, 2)
	if _, err := s.out.WriteString(`{"boot":"b","seq":`); err != nil {
		t.Fatal(err)
	}
	s.ship(t, to, nil)
	s.whole(t, to.got)
	s.n++
	if _, err := fmt.Fprintf(s.out, "%d}\n", s.n); err != nil {
		t.Fatal(err)
	}
	s.ship(t, to, nil)
	s.ship(t, to, nil)
	s.whole(t, to.got)
}

// A shipper that is killed anywhere sends some lines again and leaves none out, in
// whatever state the position on disk is.
func TestKilled(t *testing.T) {
	s, to := newSpool(t), new(sink)
	seen := map[string]bool{}
	for i := range 40 {
		s.write(t, 100)
		if i%7 == 3 {
			s.rotate(t, fmt.Sprintf("events.jsonl.%d", i))
		}
		ctx, kill := context.WithCancel(t.Context())
		calls := 0
		to.fail = func(lines [][]byte) error {
			if calls++; calls > 1 {
				kill() // taken, and the answer lost
			}
			for _, l := range lines {
				seen[string(l)] = true
			}
			return ctx.Err()
		}
		x := Shipper{Events: s.events, State: s.events + ".shipped", Send: to.send, Log: slog.New(slog.DiscardHandler)}
		if err := x.Run(ctx, true); err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		kill()
	}
	to.fail = func(lines [][]byte) error {
		for _, l := range lines {
			seen[string(l)] = true
		}
		return nil
	}
	s.ship(t, to, nil)
	if len(seen) != s.n {
		t.Errorf("%d of %d lines arrived", len(seen), s.n)
	}
}

// A file that is away before it was read is told, and so is one that was cut; another
// file that got its number is not taken for it.
func TestLost(t *testing.T) {
	s, to := newSpool(t), new(sink)
	s.write(t, 3)
	s.ship(t, to, nil)
	s.rotate(t, "events.jsonl.1")
	if err := os.Remove(filepath.Join(s.dir, "events.jsonl.1")); err != nil {
		t.Fatal(err)
	}
	s.write(t, 2)
	var log strings.Builder
	s.ship(t, to, &log)
	s.whole(t, to.got)
	if !strings.Contains(log.String(), "not there any more") {
		t.Errorf("said %q", log.String())
	}
	// The same number, as file systems give it again: the state says another first line.
	state, err := readPosition(s.events + ".shipped")
	if err != nil {
		t.Fatal(err)
	}
	state.First = "another"
	if err := writePosition(s.events+".shipped", state); err != nil {
		t.Fatal(err)
	}
	to.got = nil
	s.ship(t, to, nil)
	if len(to.got) != 2 {
		t.Errorf("of a new file with an old number came %q", to.got)
	}
	log.Reset()
	open := tail{events: s.events, state: s.events + ".shipped", log: slog.New(slog.NewTextHandler(&log, nil))}
	defer open.close()
	if lines, err := open.next(); err != nil || len(lines) != 2 {
		t.Fatal(lines, err)
	}
	if err := s.out.Truncate(0); err != nil {
		t.Fatal(err)
	}
	if lines, err := open.next(); err != nil || len(lines) != 0 || !strings.Contains(log.String(), "was cut") {
		t.Errorf("%q, %v; said %q", lines, err, log.String())
	}
	s.write(t, 1)
	if lines, err := open.next(); err != nil || len(lines) != 1 {
		t.Errorf("behind the cut: %q, %v", lines, err)
	}
	if err := os.WriteFile(s.events+".shipped", []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	x := Shipper{Events: s.events, State: s.events + ".shipped", Send: to.send, Log: slog.New(slog.DiscardHandler)}
	if err := x.Run(t.Context(), true); err == nil || !strings.Contains(err.Error(), "remove it to ship everything") {
		t.Errorf("a broken position: %v", err)
	}
}

// What is unwanted is found among the others, and left out alone; what cannot be taken
// now is tried until it can, as late as the receiver says.
func TestRefused(t *testing.T) {
	s, to := newSpool(t), new(sink)
	s.write(t, 100)
	bad := `{"boot":"b","seq":37}`
	to.fail = func(lines [][]byte) error {
		if slices.ContainsFunc(lines, func(l []byte) bool { return string(l) == bad }) {
			return &Unwanted{Why: "too odd"}
		}
		return nil
	}
	var log strings.Builder
	s.ship(t, to, &log)
	if len(to.got) != 99 || slices.Contains(to.got, bad) || !strings.Contains(log.String(), "too odd") {
		t.Errorf("%d lines; said %q", len(to.got), log.String())
	}
	synctest.Test(t, func(t *testing.T) {
		var tries []time.Duration
		start := time.Now()
		x := Shipper{Log: slog.New(slog.DiscardHandler), Send: func(context.Context, [][]byte) error {
			tries = append(tries, time.Since(start))
			switch len(tries) {
			case 1:
				return errors.New("refused")
			case 2:
				return &RetryAfter{Err: errors.New("busy"), Wait: time.Minute}
			}
			return nil
		}}
		if err := x.deliver(t.Context(), [][]byte{[]byte("x")}); err != nil {
			t.Fatal(err)
		}
		if want := []time.Duration{0, time.Second, 61 * time.Second}; !slices.Equal(tries, want) {
			t.Errorf("tried after %v, want %v", tries, want)
		}
	})
}

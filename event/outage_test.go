package event

import (
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// full lets no write of g pass.
func full([]byte) (int, error) { return 0, errFull }

// typesOf lists the types of the lines of g, in order.
func typesOf(t *testing.T, data []byte) (all []string) {
	t.Helper()
	for text := range strings.Lines(string(data)) {
		e, err := decode([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e.Type())
	}
	return all
}

// While nothing can be written, the log hears of it once a minute and the Writer says
// so; when lines can be written again, that is on record, and logged once.
func TestOutageIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		g := &gateWriter{next: full}
		w := &Writer{W: g, Log: slog.New(slog.NewTextHandler(&log, nil))}
		if w.Unavailable() != nil || w.Failing() != nil {
			t.Error("a Writer that has written nothing is not expected to")
		}
		flow := OnRecord{To: w, Log: w.Log}
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() { _ = w.Emit(Event{Body: asked("a")}) })
		}
		wg.Wait()
		if flow.Allow(Event{Session: "s", Body: &Connection{Verdict: Verdict{Decision: Allowed}}}) {
			t.Error("a flow passes that is not on record")
		}
		if !errors.Is(w.Failing(), errFull) || !errors.Is(w.Unavailable(), errFull) || !errors.Is((Fanout{Fanout{}, w}).Unavailable(), errFull) {
			t.Errorf("%v, %v", w.Failing(), w.Unavailable())
		}
		if n := strings.Count(log.String(), "\n"); n != 1 {
			t.Errorf("%d lines of log:\n%s", n, log.String())
		}
		time.Sleep(2 * tellEvery)
		for range 50 {
			_ = w.Emit(Event{Body: asked("a")})
		}
		if n := strings.Count(log.String(), "everything is denied"); n != 2 {
			t.Errorf("%d lines of log after two minutes:\n%s", n, log.String())
		}
		g.next = nil
		if err := w.Emit(Event{Session: "s", Body: asked("b")}); err != nil || w.Failing() != nil || w.Unavailable() != nil {
			t.Errorf("with room again: %v, %v", err, w.Failing())
		}
		if n := strings.Count(log.String(), "recorded again"); n != 1 || !strings.Contains(log.String(), "lost=102 for=2m0s") {
			t.Errorf("the end of it:\n%s", log.String())
		}
		if got := strings.Join(typesOf(t, g.Bytes()), " "); got != "record.resumed dns.query" {
			t.Error(got)
		}
		first, err := decode(g.Bytes()[:strings.Index(g.String(), "\n")])
		body, ok := first.Body.(*recordResumed)
		if err != nil || !ok || body.Lost != 102 || body.Duration != 2*time.Minute || !strings.Contains(body.Error, "full") || first.Seq != 1 || first.Session != "s" {
			t.Errorf("%+v %+v %v", first, body, err)
		}
		if err := w.Emit(Event{Body: asked("c")}); err != nil || len(typesOf(t, g.Bytes())) != 3 {
			t.Errorf("it is told again: %v\n%s", err, g.Bytes())
		}
	})
}

// No event is emitted: Unavailable itself tries once a second and notices free space.
func TestOutageEndsByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gateWriter{next: full}
		w := &Writer{W: g}
		_ = w.Emit(Event{Body: asked("a")})
		_ = w.Unavailable()
		calls := g.calls
		for range 100 {
			if w.Unavailable() == nil {
				t.Fatal("a full disk has room")
			}
		}
		if g.calls != calls {
			t.Errorf("%d attempts within a second", g.calls-calls)
		}
		g.next = nil
		if w.Unavailable() == nil {
			t.Error("it was tried within the second")
		}
		time.Sleep(probeEvery)
		if err := w.Unavailable(); err != nil {
			t.Error(err)
		}
		if got := strings.Join(typesOf(t, g.Bytes()), " "); got != "record.resumed" {
			t.Error(got)
		}
	})
}

// The reader of a pipe wakes up: what was late ends the outage, and the next line says
// that there was one.
func TestOutageOfAPipe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		hold := make(chan struct{})
		g := &gateWriter{next: func(p []byte) (int, error) { <-hold; return len(p), nil }}
		w := &Writer{W: g, Timeout: time.Second, Log: slog.New(slog.NewTextHandler(&log, nil))}
		if err := w.Emit(Event{Body: asked("a")}); !errors.Is(err, ErrStalled) || !errors.Is(w.Unavailable(), ErrStalled) {
			t.Errorf("%v, %v", err, w.Unavailable())
		}
		close(hold)
		synctest.Wait()
		if err := w.Unavailable(); err != nil {
			t.Error(err)
		}
		if n := strings.Count(log.String(), "\n"); n != 2 || !strings.Contains(log.String(), "recorded again") {
			t.Errorf("%d lines:\n%s", n, log.String())
		}
		if err := w.Emit(Event{Body: asked("b")}); err != nil {
			t.Error(err)
		}
		if got := strings.Join(typesOf(t, g.Bytes()), " "); got != "dns.query record.resumed dns.query" {
			t.Error(got)
		}
	})
}

// A share that is used up is unavailable, and its Writer is not.
func TestShareIsUnavailable(t *testing.T) {
	g := &gateWriter{}
	w := &Writer{W: g}
	s, _ := w.Share(0, 0, 100, nil)
	if err := errors.Join((Fanout{s}).Unavailable(), s.Emit(Event{Body: asked("a")})); err != nil {
		t.Fatal(err)
	}
	if err := s.Emit(Event{Body: asked("a")}); !errors.Is(err, ErrQuota) || !errors.Is((Fanout{s}).Unavailable(), ErrQuota) || w.Unavailable() != nil {
		t.Errorf("%v: %v, %v", err, (Fanout{s}).Unavailable(), w.Unavailable())
	}
	if _, err := w.Reopen(&gateWriter{}); err != nil || (Fanout{s}).Unavailable() != nil {
		t.Errorf("a new file: %v, %v", err, (Fanout{s}).Unavailable())
	}
}

package trail

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"egressd/event"
	"egressd/event/eventtest"
	"egressd/internal/run/summary"
	"egressd/policy"
)

func emptyPolicy(t *testing.T) *policy.Policy {
	t.Helper()
	p, err := policy.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func blockedEvent(t *testing.T) event.Event {
	t.Helper()
	h, err := policy.ParseHost("a.test")
	if err != nil {
		t.Fatal(err)
	}
	return event.Event{Body: &event.Connection{
		Door: event.DoorConnect, Verdict: event.Verdict{Reason: policy.ReasonHostNotListed}, Host: h, Port: 443,
	}}
}

func TestTrail(t *testing.T) {
	dir := t.TempDir()
	events, learned := filepath.Join(dir, "e.jsonl"), filepath.Join(dir, "p.yaml")
	tr, err := Open(Config{Events: events, Learn: learned, Policy: emptyPolicy(t)})
	if err != nil {
		t.Fatal(err)
	}
	if got := tr.Protect(); !slices.Equal(got, []string{events}) {
		t.Errorf("protects %q", got)
	}
	blocked := blockedEvent(t)
	argv := []string{"curl", "--oauth2-bearer", "hunter2"}
	if err := errors.Join(tr.Started("netns", "pids=1024", argv), tr.Sink().Emit(blocked), tr.Ended(7, time.Second, nil)); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	if err := tr.Close(&said, summary.Style{}); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(events)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(data, []byte("hunter2")) {
		t.Error("an argument is in the events")
	}
	var lines []eventtest.Line
	for line := range bytes.Lines(data) {
		var e eventtest.Line
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, e)
	}
	sum := sha256.Sum256([]byte("curl\x00--oauth2-bearer\x00hunter2"))
	switch {
	case len(lines) != 3:
		t.Fatalf("%d lines", len(lines))
	case lines[0].Type != "command.executed" || lines[0].ArgvHash != hex.EncodeToString(sum[:]) || lines[0].Session == "":
		t.Errorf("start: %+v", lines[0])
	case lines[2].Type != "run.completed" || *lines[2].ExitCode != 7 || lines[2].DurationMS != 1000 || lines[2].Isolation != "netns":
		t.Errorf("end: %+v", lines[2])
	}
	if !strings.Contains(said.String(), "blocked  a.test:443") {
		t.Errorf("summary: %s", said.String())
	}
	if text, err := os.ReadFile(learned); err != nil || !strings.Contains(string(text), "a.test:443") {
		t.Errorf("learned %q, %v", text, err)
	}
}

func TestFailedRun(t *testing.T) {
	tr, err := Open(Config{Policy: emptyPolicy(t)})
	if err != nil {
		t.Fatal(err)
	}
	var got eventtest.Line
	tr.sinks = event.Fanout{sinkFunc(func(e event.Event) error { got = eventtest.Of(e); return nil })}
	if err := tr.Ended(125, -time.Second, errors.New("no namespace")); err != nil {
		t.Fatal(err)
	}
	if got.Type != "run.failed" || got.Error != "no namespace" || got.DurationMS != 0 {
		t.Errorf("got %+v", got)
	}
	if tr.Protect() != nil {
		t.Error("protects a file that is not there")
	}
}

// Who ran launch ... 2>&1 | head must not be told that the run failed.
func TestSummaryThatNobodyReads(t *testing.T) {
	tr, err := Open(Config{Policy: emptyPolicy(t)})
	if err != nil {
		t.Fatal(err)
	}
	blocked := blockedEvent(t)
	if err := tr.Sink().Emit(blocked); err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close() }()
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if err := tr.Close(w, summary.Style{}); err != nil {
		t.Error(err)
	}
}

type sinkFunc func(event.Event) error

func (f sinkFunc) Emit(e event.Event) error { return f(e) }

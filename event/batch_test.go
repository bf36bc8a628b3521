package event

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"egressd/policy"
)

// queries are n allowed questions.
func queries(n int) []Event {
	batch := make([]Event, n)
	for i := range batch {
		batch[i] = Event{Body: &Query{Asked: fmt.Sprintf("n%d.test", i), Verdict: Verdict{Decision: Allowed, Reason: policy.ReasonAllowed}, RCode: NoError}}
	}
	return batch
}

// Lines of batches and of single events that come at the same time are whole, in order
// and numbered without a gap.
func TestEmitBatch(t *testing.T) {
	var out bytes.Buffer
	w := &Writer{W: &out}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 20 {
				batch := queries(3 * atOnce / 2) // more than are put at once
				batch[7].Settled = true
				w.EmitBatch(batch)
				for i := range batch {
					if batch[i].Err != nil {
						t.Errorf("entry %d: %v", i, batch[i].Err)
					}
				}
				if err := w.Emit(queries(1)[0]); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if want := 4 * 20 * (3*atOnce/2 - 1 + 1); len(lines) != want {
		t.Fatalf("%d lines, want %d", len(lines), want)
	}
	for i, l := range lines {
		var e struct {
			Seq  int
			Host string
			Time time.Time
		}
		if err := json.Unmarshal([]byte(l), &e); err != nil || e.Seq != i+1 || e.Time.IsZero() || e.Host == "n7.test" {
			t.Fatalf("line %d: %s (%v)", i+1, l, err)
		}
	}
}

// short takes most bytes and then fails.
type short struct {
	bytes.Buffer
	most int
}

func (s *short) Write(p []byte) (int, error) {
	n := min(len(p), s.most-s.Len())
	s.Buffer.Write(p[:n])
	if n < len(p) {
		return n, io.ErrShortWrite
	}
	return n, nil
}

// Of a write that failed in the middle, each entry knows whether its line is there.
func TestEmitBatchFailsInPart(t *testing.T) {
	out := &short{most: 700}
	w := &Writer{W: out}
	batch := queries(10)
	w.EmitBatch(batch)
	whole := strings.Count(out.String(), "\n")
	if whole == 0 || whole == 10 {
		t.Fatalf("%d lines", whole)
	}
	for i := range batch {
		if failed := batch[i].Err != nil; failed != (i >= whole) {
			t.Errorf("entry %d of %d whole lines: %v", i, whole, batch[i].Err)
		}
	}
}

// A quota that ends within a batch denies the rest of it.
func TestEmitBatchQuota(t *testing.T) {
	var out bytes.Buffer
	w := &Writer{W: &out}
	s, _ := w.Share(0, 0, 500, nil)
	batch := queries(10)
	emitBatch(s, batch)
	lines := strings.Count(out.String(), "\n")
	if lines == 0 || lines == 10 {
		t.Fatalf("%d lines", lines)
	}
	for i := range batch {
		if errors.Is(batch[i].Err, ErrQuota) != (i >= lines) {
			t.Errorf("entry %d of %d lines: %v", i, lines, batch[i].Err)
		}
	}
}

// list keeps the words of what it takes, but of names that it refuses.
type list struct {
	words  []string
	refuse string
}

func (l *list) Emit(e Event) error {
	q := e.Body.(*Query)
	if q.Asked == l.refuse && q.Reason != policy.ReasonOverload {
		return io.ErrShortWrite
	}
	l.words = append(l.words, fmt.Sprint(q.Asked, " ", q.Decision, " ", q.Reason, " ", q.RCode))
	return nil
}

// What Each says of a batch is what Allow and Deny say of each event, to every sink of a
// Fanout: an allowed flow that the first does not take is denied, and counted as that.
func TestEachAgreesWithAllow(t *testing.T) {
	batch := func() []Event {
		b := queries(4)
		b[2].Body = &Query{Asked: "n2.test", Verdict: Verdict{Reason: policy.ReasonHostNotListed}, RCode: NXDomain}
		return b
	}
	for _, refuse := range []string{"", "n1.test", "n2.test"} {
		first, second := [2]*list{}, [2]*list{}
		var logs [2]bytes.Buffer
		for i := range 2 {
			first[i], second[i] = &list{refuse: refuse}, &list{}
		}
		log := func(i int) *slog.Logger {
			return slog.New(slog.NewTextHandler(&logs[i], &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
				if a.Key == slog.TimeKey {
					return slog.Attr{}
				}
				return a
			}}))
		}
		together := batch()
		rec := OnRecord{To: Fanout{first[0], second[0]}, Log: log(0)}
		rec.Each(together)
		for i, e := range batch() {
			rec := OnRecord{To: Fanout{first[1], second[1]}, Log: log(1)}
			if e.Allowed() {
				rec.Allow(e)
			} else {
				rec.Deny(e)
			}
			if (together[i].Err != nil) != rec.Unrecorded() {
				t.Errorf("%s refused, entry %d: %v", refuse, i, together[i].Err)
			}
		}
		for _, l := range [][2]*list{first, second} {
			got, want := map[string]int{}, map[string]int{}
			for i := range max(len(l[0].words), len(l[1].words)) {
				got[l[0].words[i]]++
				want[l[1].words[i]]++
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s refused: %v, want %v", refuse, got, want)
			}
		}
		if logs[0].String() != logs[1].String() {
			t.Errorf("log %s, want %s", &logs[0], &logs[1])
		}
	}
	none := batch()
	new(OnRecord).Each(none)
	for i := range none {
		if none[i].Err == nil {
			t.Error("recorded nowhere")
		}
	}
}

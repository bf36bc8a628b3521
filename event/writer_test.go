package event

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"egressd/event/internal/line"
)

// numbers decodes lines and reports their numbers; every line must be whole.
// numbers reports the numbers of all lines but those of record.resumed, as if the Writer
// had not written these.
func numbers(t *testing.T, data []byte) []uint64 {
	t.Helper()
	var out []uint64
	resumed := uint64(0)
	for text := range bytes.Lines(data) {
		var e line.Line
		if err := json.Unmarshal(text, &e); err != nil {
			t.Fatalf("line %q: %v", text, err)
		}
		if e.Type == "record.resumed" {
			resumed++
			continue
		}
		out = append(out, e.Seq-resumed)
	}
	return out
}

func wantNoGaps(t *testing.T, seqs []uint64, n int) {
	t.Helper()
	if len(seqs) != n {
		t.Errorf("%d lines, want %d", len(seqs), n)
	}
	for i, s := range seqs {
		if s != uint64(i+1) {
			t.Fatalf("line %d has number %d", i+1, s)
		}
	}
}

func TestWriterKeepsEveryEvent(t *testing.T) {
	f, err := Open(filepath.Join(t.TempDir(), "e.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	w := &Writer{W: f}
	var wg sync.WaitGroup
	const writers, each = 16, 200
	for range writers {
		wg.Go(func() {
			for range each {
				if err := w.Emit(Event{Body: asked("h")}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if err := errors.Join(w.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	wantNoGaps(t, numbers(t, data), writers*each)
	if err := w.Emit(Event{}); !errors.Is(err, ErrClosed) {
		t.Errorf("Emit after Close: %v", err)
	}
}

// gateWriter lets a test hold and fail writes.
type gateWriter struct {
	bytes.Buffer
	calls int
	next  func(p []byte) (int, error) // nil writes everything
}

func (g *gateWriter) Write(p []byte) (int, error) {
	g.calls++
	if g.next != nil {
		n, err := g.next(p)
		g.Buffer.Write(p[:n])
		return n, err
	}
	return g.Buffer.Write(p)
}

func TestEmitReturnsAfterTheWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		g := &gateWriter{}
		g.next = func(p []byte) (int, error) { <-hold; return len(p), nil }
		w := &Writer{W: g}
		done := make(chan error, 10)
		for range 10 {
			go func() { done <- w.Emit(Event{Body: asked("")}) }()
		}
		synctest.Wait()
		if len(done) != 0 {
			t.Fatal("Emit returned before the write")
		}
		close(hold)
		synctest.Wait()
		if len(done) != 10 {
			t.Fatalf("%d of 10 Emits returned", len(done))
		}
		for range 10 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if g.calls > 3 {
			t.Errorf("%d writes for 10 waiting events: they do not share", g.calls)
		}
		wantNoGaps(t, numbers(t, g.Bytes()), 10)
	})
}

// A disk fills up in the middle of a line, and has room again later.
func TestPartialWrite(t *testing.T) {
	for cut := 0; cut < 200; cut += 7 {
		t.Run(fmt.Sprint(cut), func(t *testing.T) {
			full := errors.New("no space")
			g := &gateWriter{}
			g.next = func(p []byte) (int, error) { return min(cut, len(p)), full }
			w := &Writer{W: g}
			first := w.Emit(Event{Body: asked("first")})
			length := len(appendLine(nil, &Event{Time: time.Now(), Seq: 1, Body: asked("first")}))
			if whole := cut >= length; (first == nil) != whole || !whole && !errors.Is(first, full) {
				t.Errorf("cut %d of %d: Emit reports %v", cut, length, first)
			}
			g.next = nil
			if err := w.Emit(Event{Body: asked("second")}); err != nil {
				t.Error(err)
			}
			want := 2
			if cut == 0 {
				want = 1
			}
			wantNoGaps(t, numbers(t, g.Bytes()), want)
			err := w.Close()
			if (err == nil) != (first == nil) {
				t.Errorf("Close reports %v after %v", err, first)
			}
		})
	}
}

func TestFailureReachesEverybodyInLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		g := &gateWriter{}
		g.next = func([]byte) (int, error) { <-hold; return 0, io.ErrClosedPipe }
		w := &Writer{W: g}
		done := make(chan error, 5)
		for range 5 {
			go func() { done <- w.Emit(Event{Body: asked("")}) }()
			synctest.Wait()
		}
		close(hold)
		for range 5 {
			if err := <-done; !errors.Is(err, io.ErrClosedPipe) {
				t.Errorf("got %v", err)
			}
		}
		g.next = nil
		if err := w.Emit(Event{Body: asked("")}); err != nil {
			t.Error(err)
		}
		wantNoGaps(t, numbers(t, g.Bytes()), 1)
	})
}

func TestStalledWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		g := &gateWriter{}
		g.next = func(p []byte) (int, error) { <-hold; return len(p), nil }
		w := &Writer{W: g, Timeout: time.Second}
		start := time.Now()
		done := make(chan error, 3)
		for range 3 {
			go func() { done <- w.Emit(Event{Body: asked("")}) }()
			synctest.Wait()
		}
		for range 3 {
			if err := <-done; !errors.Is(err, ErrStalled) {
				t.Errorf("got %v", err)
			}
		}
		if d := time.Since(start); d != time.Second {
			t.Errorf("gave up after %v", d)
		}
		if err := w.Emit(Event{}); !errors.Is(err, ErrStalled) {
			t.Errorf("while stalled: %v", err)
		}
		close(hold) // the reader wakes up
		synctest.Wait()
		if err := w.Emit(Event{Body: asked("")}); err != nil {
			t.Error(err)
		}
		wantNoGaps(t, numbers(t, g.Bytes()), 2)
		if err := w.Close(); err == nil {
			t.Error("Close forgot what was lost")
		}
	})
}

// A Writer that nobody set up denies, like every zero value.
func TestZeroWriter(t *testing.T) {
	var w Writer
	if err := w.Emit(Event{Body: asked("")}); err == nil {
		t.Error("an event went nowhere, and nobody was told")
	}
	if err := w.Close(); err == nil {
		t.Error("Close forgot what was lost")
	}
}

func TestCloseDoesNotHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		g := &gateWriter{}
		g.next = func(p []byte) (int, error) { <-hold; return len(p), nil }
		w := &Writer{W: g, Timeout: time.Second}
		go func() { _ = w.Emit(Event{Body: asked("")}) }() // its error is Close's, too
		synctest.Wait()
		if err := w.Close(); !errors.Is(err, ErrStalled) {
			t.Errorf("Close: %v", err)
		}
		close(hold)
	})
}

func TestQueueIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		g := &gateWriter{}
		g.next = func(p []byte) (int, error) { <-hold; return len(p), nil }
		w := &Writer{W: g}
		big := Event{Body: &FileChanged{Path: string(bytes.Repeat([]byte{1}, maxStringBytes))}}
		var wg sync.WaitGroup
		for range 400 {
			wg.Go(func() {
				if err := w.Emit(big); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		w.mu.Lock()
		n := 0
		if w.group.queue != nil {
			n = len(w.group.queue.buf)
		}
		w.mu.Unlock()
		if n == 0 {
			t.Error("nobody was told that the full queue is on its way and there is room again")
		}
		if n > maxQueueBytes+7*maxStringBytes {
			t.Errorf("%d bytes are queued", n)
		}
		close(hold)
		wg.Wait()
		wantNoGaps(t, numbers(t, g.Bytes()), 400)
	})
}

func TestFullDisk(t *testing.T) {
	f, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	w := &Writer{W: f}
	if err := w.Emit(Event{Body: asked("")}); err == nil {
		t.Error("a full disk took the line")
	}
	if err := errors.Join(w.Close(), f.Close()); err == nil {
		t.Error("Close reports nothing")
	}
}

func TestClosedPipe(t *testing.T) {
	r, wr, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	w := &Writer{W: wr}
	if err := w.Emit(Event{Body: asked("")}); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if err := w.Emit(Event{Body: asked("")}); err == nil {
		t.Error("a closed pipe took the line")
	}
	if err := wr.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestFanout(t *testing.T) {
	var a, b counter
	bad := &failing{}
	allowed, blocked := Event{Body: &Query{Verdict: Verdict{Decision: Allowed}}}, Event{Body: new(Query)}
	f := Fanout{&a, bad, &b}
	if f.Emit(allowed) == nil || f.Emit(blocked) == nil {
		t.Error("the failure of one sink is not reported")
	}
	if a != 2 || b != 1 {
		t.Errorf("sinks heard %d and %d events; behind the failing one only the blocked counts", a, b)
	}
	if err := (Fanout{&a, &b}).Emit(allowed); err != nil {
		t.Error(err)
	}
}

type counter int

func (c *counter) Emit(Event) error { *c++; return nil }

type failing struct{}

func (*failing) Emit(Event) error { return io.ErrUnexpectedEOF }

func BenchmarkEmit(b *testing.B) {
	f, err := Open(filepath.Join(b.TempDir(), "e"))
	if err != nil {
		b.Fatal(err)
	}
	w := &Writer{W: f}
	e := sample()
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := w.Emit(e); err != nil {
				b.Error(err)
			}
		}
	})
	if err := errors.Join(w.Close(), f.Close()); err != nil {
		b.Fatal(err)
	}
}

// asked is a small body.
func asked(name string) *Query { return &Query{Asked: name} }

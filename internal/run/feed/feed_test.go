package feed

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
)

func TestFeed(t *testing.T) {
	var out bytes.Buffer
	f := New(&out, Bounds{Queue: 1 << 20})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 100 {
				_, _ = io.WriteString(f, "line\n")
			}
		})
	}
	all.Wait()
	if lost, err := f.Close(); lost != 0 || err != nil || out.String() != strings.Repeat("line\n", 800) {
		t.Errorf("%d lost, %v, %d bytes", lost, err, out.Len())
	}
	if n, err := io.WriteString(f, "late\n"); n != 5 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if lost, _ := f.Close(); lost != 1 {
		t.Errorf("%d lost", lost)
	}
}

// blocked is a reader that reads when it is let.
type blocked struct {
	entered, let chan struct{}
	bytes.Buffer
}

func (b *blocked) Write(p []byte) (int, error) {
	b.entered <- struct{}{}
	<-b.let
	return b.Buffer.Write(p)
}

// Nobody waits for a reader that does not read, and what is kept for it is bounded.
func TestNobodyWaits(t *testing.T) {
	b := &blocked{entered: make(chan struct{}, 10), let: make(chan struct{})}
	f := New(b, Bounds{Queue: 100})
	_, _ = io.WriteString(f, "first\n")
	<-b.entered
	for range 1000 {
		_, _ = io.WriteString(f, "nine....\n")
	}
	close(b.let)
	if lost, err := f.Close(); lost != 1000-11 || err != nil || b.String() != "first\n"+strings.Repeat("nine....\n", 11) {
		t.Errorf("%d lost, %v, %q", lost, err, b.String())
	}
}

func TestTotal(t *testing.T) {
	var out bytes.Buffer
	f := New(&out, Bounds{Queue: 1 << 20, Total: 10})
	for _, line := range []string{"12345\n", "too long\n", "1\n"} { // what comes later is no part of a prefix
		_, _ = io.WriteString(f, line)
	}
	if lost, err := f.Close(); lost != 2 || err != nil || out.String() != "12345\n" {
		t.Errorf("%d lost, %v, %q", lost, err, out.String())
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("full") }

func TestReaderGone(t *testing.T) {
	f := New(failing{}, Bounds{Queue: 100})
	_, _ = io.WriteString(f, "x\n")
	if _, err := f.Close(); err == nil {
		t.Error("no error")
	}
}

// A reader that hangs for good does not keep the run from ending.
func TestCloseEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &blocked{entered: make(chan struct{}, 1), let: make(chan struct{})}
		f := New(b, Bounds{Queue: 100})
		_, _ = io.WriteString(f, "x\n")
		if _, err := f.Close(); err != nil {
			t.Error(err)
		}
		close(b.let)
	})
}

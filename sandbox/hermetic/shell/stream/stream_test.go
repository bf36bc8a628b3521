package stream

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
)

func TestPipe(t *testing.T) {
	r, w := Pipe()
	in, out := Bound{t.Context(), r}, Bound{t.Context(), w}
	go func() {
		io.WriteString(out, strings.Repeat("x", 3*pipeSize))
		w.Close()
	}()
	b, err := io.ReadAll(in)
	if err != nil || len(b) != 3*pipeSize {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	r.Close()
}

func TestBroken(t *testing.T) {
	r, w := Pipe()
	r.Close()
	if _, err := (Bound{t.Context(), w}).Write([]byte("x")); !errors.Is(err, syscall.EPIPE) {
		t.Errorf("got %v", err)
	}
}

// TestOwners keeps a pipe open as long as one owner is left.
func TestOwners(t *testing.T) {
	r, w := Pipe()
	v := w.Dup()
	w.Close()
	go func() {
		io.WriteString(Bound{t.Context(), v}, "still")
		v.Close()
	}()
	if b, err := io.ReadAll(Bound{t.Context(), r}); string(b) != "still" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
}

func TestContext(t *testing.T) {
	r, w := Pipe()
	defer w.Close()
	ctx, cancel := context.WithCancel(t.Context())
	go cancel()
	if _, err := (Bound{ctx, r}).Read(make([]byte, 1)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	pr, pw, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer pr.Close()
	defer pw.Close()
	f := Reader(pr)
	ctx, cancel = context.WithCancel(t.Context())
	go cancel()
	if _, err := (Bound{ctx, f}).Read(make([]byte, 1)); err == nil {
		t.Error("a read of the outer input outlives its context")
	}
	io.WriteString(pw, "a")
	b := make([]byte, 1)
	if _, err := (Bound{t.Context(), f}).Read(b); err != nil || b[0] != 'a' {
		t.Errorf("the next read: %q, %v", b, err)
	}
}

func TestModes(t *testing.T) {
	r, w := Pipe()
	if _, err := (Bound{t.Context(), r}).Write(nil); !errors.Is(err, syscall.EBADF) {
		t.Errorf("write to the reading end: %v", err)
	}
	if _, err := (Bound{t.Context(), w}).Read(nil); !errors.Is(err, syscall.EBADF) {
		t.Errorf("read from the writing end: %v", err)
	}
	if _, err := (Bound{t.Context(), nil}).Read(nil); !errors.Is(err, syscall.EBADF) {
		t.Errorf("closed: %v", err)
	}
	refused := errors.New("no more")
	f := Writer(io.Discard, &sync.Mutex{}, func(int64) error { return refused })
	if _, err := (Bound{t.Context(), f}).Write([]byte("x")); !errors.Is(err, refused) {
		t.Errorf("over the limit: %v", err)
	}
}

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

// TestOwners checks that a pipe stays open as long as it has an owner.
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

// TestOuterFile checks that the offset in the worker's own input is shared, and
// that opening it by its name reads it from its beginning.
func TestOuterFile(t *testing.T) {
	name := t.TempDir() + "/f"
	if err := os.WriteFile(name, []byte("abcdef"), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	b := Bound{t.Context(), Reader(r)}
	three := make([]byte, 3)
	io.ReadFull(b, three)
	if at, err := b.Seek(-2, io.SeekCurrent); at != 1 || err != nil {
		t.Errorf("stands at %d, %v", at, err)
	}
	again := Again(b.File)
	if all, err := io.ReadAll(Bound{t.Context(), again}); string(all) != "abcdef" || err != nil {
		t.Errorf("opened again: %q, %v", all, err)
	}
	again.Close()
	if all, err := io.ReadAll(b); string(all) != "bcdef" || err != nil {
		t.Errorf("went on with %q, %v", all, err)
	}
	info, err := b.Stat()
	if err != nil || info.Size() != 6 || !info.Mode().IsRegular() || info.Name() == "f" || info.Sys() != nil {
		t.Errorf("stat: %v, %v", info, err)
	}
}

func TestNoSeek(t *testing.T) {
	r, w := Pipe()
	defer r.Close()
	defer w.Close()
	if _, err := (Bound{t.Context(), r}).Seek(0, io.SeekCurrent); !errors.Is(err, syscall.ESPIPE) {
		t.Errorf("a pipe: %v", err)
	}
	if _, err := (Bound{t.Context(), nil}).Seek(0, io.SeekCurrent); !errors.Is(err, syscall.EBADF) {
		t.Errorf("closed: %v", err)
	}
	if info, err := (Bound{t.Context(), r}).Stat(); err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		t.Errorf("stat: %v, %v", info, err)
	}
	if info, err := (Bound{t.Context(), Reader(nil)}).Stat(); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		t.Errorf("no input: %v, %v", info, err)
	}
}

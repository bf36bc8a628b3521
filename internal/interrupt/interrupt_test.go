package interrupt

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"time"
)

func TestSecond(t *testing.T) {
	ctx, arm, stop := Second(context.Background())
	defer stop()
	arm()
	kill := func(sig syscall.Signal) {
		if err := syscall.Kill(syscall.Getpid(), sig); err != nil {
			t.Fatal(err)
		}
	}
	kill(syscall.SIGPIPE)
	kill(syscall.SIGPIPE)
	kill(syscall.SIGTERM)
	select {
	case <-ctx.Done():
		t.Fatal("ended with the first")
	case <-time.After(50 * time.Millisecond):
	}
	kill(syscall.SIGINT)
	select {
	case <-ctx.Done():
	case <-time.After(5 * time.Second):
		t.Fatal("did not end with the second")
	}
}

// Before anybody forwards signals the first one must not be lost.
func TestEarly(t *testing.T) {
	ctx, _, stop := Second(context.Background())
	defer stop()
	for _, sig := range []syscall.Signal{syscall.SIGPIPE, syscall.SIGTERM} {
		if err := syscall.Kill(syscall.Getpid(), sig); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-ctx.Done():
	case <-time.After(5 * time.Second):
		t.Fatal("did not end with the first")
	}
	if err := context.Cause(ctx); !errors.Is(err, ErrEarly) {
		t.Errorf("cause %v", err)
	}
}

package interrupt

import (
	"context"
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

// A run that came to nothing ends what was never armed.
func TestStopUnarmed(t *testing.T) {
	ctx, _, stop := Second(context.Background())
	stop()
	if ctx.Err() == nil {
		t.Error("the context lives on")
	}
}

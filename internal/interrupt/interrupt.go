// Package interrupt turns the signals that ask launch to end into a context.
package interrupt

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// Second reports a context that ends with the second signal that asks this
// process to end (INT, TERM, HUP). The first one belongs to the program, to
// which it is forwarded; the second ends everything. The caller calls stop.
//
// SIGPIPE is caught, so that a closed pipe is an error of the write and does
// not end this process before its events are written. Caught, not ignored: an
// ignored signal would stay ignored in the program. What was ignored from the
// start (nohup) stays ignored.
func Second(parent context.Context) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancel(parent)
	signals := make(chan os.Signal, 4)
	for _, sig := range []os.Signal{syscall.SIGPIPE, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(sig) {
			signal.Notify(signals, sig)
		}
	}
	done := make(chan struct{})
	go count(ctx, signals, cancel, done)
	return ctx, func() {
		signal.Stop(signals)
		cancel()
		<-done
	}
}

func count(ctx context.Context, signals <-chan os.Signal, cancel func(), done chan<- struct{}) {
	defer close(done)
	for n := 0; n < 2; {
		select {
		case sig := <-signals:
			if sig != syscall.SIGPIPE {
				n++
			}
		case <-ctx.Done():
			return
		}
	}
	cancel()
}

// Package interrupt turns the signals that ask launch to end into a context.
package interrupt

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
)

// ErrEarly is why a context of [Second] ended before it was armed.
var ErrEarly = errors.New("ended by a signal before the program started")

// Second reports a context that ends with the second signal that asks this
// process to end (INT, TERM, HUP). The first one belongs to the program, to
// which it is forwarded; the second ends everything. Until the caller calls
// arm, right before somebody else forwards signals, there is no program yet,
// and the first one ends the context, with the cause ErrEarly. The caller
// calls stop.
//
// SIGPIPE is caught, so that a closed pipe is an error of the write and does
// not end this process before its events are written. Caught, not ignored: an
// ignored signal would stay ignored in the program. After stop there is no
// program any more, and it is ignored: a reader that went away (launch ... 2>&1 |
// head) does not change how the run ended. What was ignored from the start
// (nohup) stays ignored.
func Second(parent context.Context) (ctx context.Context, arm, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 4)
	for _, sig := range []os.Signal{syscall.SIGPIPE, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(sig) {
			signal.Notify(signals, sig)
		}
	}
	done := make(chan struct{})
	armed := new(atomic.Bool)
	go count(ctx, signals, armed, cancel, done)
	return ctx, func() { armed.Store(true) }, func() {
		signal.Ignore(syscall.SIGPIPE)
		signal.Stop(signals)
		cancel(nil)
		<-done
	}
}

func count(ctx context.Context, signals <-chan os.Signal, armed *atomic.Bool, cancel context.CancelCauseFunc, done chan<- struct{}) {
	defer close(done)
	for n := 0; n < 2; {
		select {
		case sig := <-signals:
			if sig == syscall.SIGPIPE {
				continue
			}
			if n++; !armed.Load() {
				cancel(ErrEarly)
				return
			}
		case <-ctx.Done():
			return
		}
	}
	cancel(nil)
}

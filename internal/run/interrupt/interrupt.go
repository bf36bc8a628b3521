// Package interrupt turns the signals that ask launch to end into a context.
//
//	ctx, arm, stop := interrupt.Second(context.Background())
//	defer stop()
//	... arm() right before signals are forwarded to the program ...
package interrupt

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// Second reports a context that ends with the second signal that asks this
// process to end (INT, TERM, HUP). The first one is for the program, to which it is
// forwarded; the second ends everything. The caller calls arm right before signals
// are forwarded, and stop at the end.
//
// Before arm nothing is caught: a signal ends this process, which has not run a
// program yet. Catching signals starts a thread, which a start has no time for.
//
// SIGPIPE is caught, so that writing to a closed pipe is an error and does not end
// this process before its events are written. It is caught, not ignored, because
// the program would inherit an ignored signal. After stop there is no program any
// more, and it is ignored: a reader that went away (launch ... 2>&1 | head) does
// not change how the run ended. A signal that was ignored from the start (nohup)
// stays ignored.
func Second(parent context.Context) (ctx context.Context, arm, stop func()) {
	ctx, cancel := context.WithCancel(parent)
	signals := make(chan os.Signal, 4)
	var counting sync.WaitGroup
	arm = func() {
		for _, sig := range []os.Signal{syscall.SIGPIPE, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
			if !signal.Ignored(sig) {
				signal.Notify(signals, sig)
			}
		}
		counting.Go(func() { count(ctx, signals, cancel) })
	}
	stop = func() {
		signal.Ignore(syscall.SIGPIPE)
		signal.Stop(signals)
		cancel()
		counting.Wait()
	}
	return ctx, arm, stop
}

func count(ctx context.Context, signals <-chan os.Signal, second func()) {
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
	second()
}

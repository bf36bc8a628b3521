package vercel

import (
	"context"
	"time"

	"egressd/sandbox/vercel/api"
)

// Alive keeps a session alive until stop is called, which waits for the end of
// what this started. ends is when the service ends the session; say may be nil.
func Alive(ctx context.Context, client *api.Client, session string, ends time.Time, say func(format string, args ...any)) (stop func() (ends time.Time)) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		ends = prolong(ctx, client, session, ends, say)
	}()
	return func() time.Time {
		cancel()
		<-done
		return ends
	}
}

// prolong asks for more time whenever less than prolongBefore is left.
func prolong(ctx context.Context, client *api.Client, session string, ends time.Time, say func(string, ...any)) time.Time {
	next := ends
	for {
		wait := time.NewTimer(max(time.Until(next)-prolongBefore, time.Second))
		select {
		case <-ctx.Done():
			wait.Stop()
			return ends
		case <-wait.C:
		}
		_, err := client.Extend(ctx, session, prolongTime)
		switch {
		case err == nil:
			// If the clocks differ, ends may be in the past although the session
			// runs.
			if ends = ends.Add(prolongTime); time.Until(ends) < prolongTime {
				ends = time.Now().Add(prolongTime)
			}
			next = ends
		case ctx.Err() != nil || api.IsGone(err):
			return ends
		default:
			if say != nil {
				say("the sandbox may end at %s: it cannot be prolonged: %v", ends.Local().Format(time.TimeOnly), err)
				say = nil
			}
			next = next.Add(time.Minute) // ask again then
		}
	}
}

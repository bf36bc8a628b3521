package vercel

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"egressd/internal/linux/foreground"
	"egressd/internal/linux/pty"
	"egressd/internal/linux/relay"
)

// keysBytes is how much of what was typed is sent at a time.
const keysBytes = 4 << 10

// person reports the terminal of who started this process, if the program is to
// have one, too: standard input and output are it, and it is in the foreground.
// Nil: there is none. The caller closes it.
func (r *run) person() (*relay.Terminal, error) {
	in, out := r.spec.Stdin, r.spec.Stdout
	if in == nil || out == nil || !foreground.IsTerminal(in) || !foreground.IsTerminal(out) {
		return nil, nil
	}
	t, err := relay.Find([3]*os.File{in, out, nil})
	if err != nil || t.Foreground() {
		return t, err
	}
	t.Close()
	return nil, nil
}

// onTerminal runs the program on a terminal, if it is to have one.
func (r *run) onTerminal(ctx context.Context) (is bool, err error) {
	person, err := r.person()
	if person == nil || err != nil {
		return err != nil, err
	}
	defer person.Close()
	request, err := r.terminalRequest()
	if err != nil {
		return true, err
	}
	master, near, err := pty.Open() // near is this process's end, transparent
	if err != nil {
		return true, err
	}
	defer master.Close()
	defer near.Close()
	if err := pty.Raw(near); err != nil {
		return true, err
	}
	rel, err := relay.Start(person, master, false)
	if err != nil {
		return true, err
	}
	defer rel.End()    // last: it waits until nobody can write
	defer near.Close() // also when the program was not started
	size, err := pty.GetSize(near)
	if err != nil {
		return true, err
	}
	request.Cols, request.Rows = size.Cols, size.Rows
	t, err := r.Client.Terminal(ctx, r.session.id, request)
	if err != nil {
		return true, err
	}
	r.began = true
	a := &attended{run: r, t: t, ends: make(chan ending, 3)}
	var wg sync.WaitGroup
	defer wg.Wait()
	defer near.Close()
	defer t.Close()
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	for _, do := range []func() ending{
		func() ending {
			return a.show(inner, func(b []byte) error { _, err := near.Write(b); return err })
		},
		func() ending { return a.keys(inner, near) },
		func() ending { return a.check(inner) },
	} {
		wg.Go(func() { a.guarded(do) })
	}
	other, stop := a.terminalSignals(inner, person, rel, near)
	defer stop()
	rel.Grant()
	err = a.await(ctx, other)
	if r.session.loose && !r.session.gone && !r.signals.hurry() {
		t.Close()
		r.endGroup(ctx)
	}
	return true, err
}

// keys sends what the person types.
func (a *attended) keys(ctx context.Context, near *os.File) ending {
	buf := make([]byte, keysBytes)
	for {
		n, err := near.Read(buf)
		if n > 0 {
			err = a.t.Write(ctx, buf[:n])
		}
		if err != nil {
			return ending{err: fmt.Errorf("%w: %w", errTerminalLost, err)}
		}
	}
}

// terminalSignals reports what to do when the terminal changes: its size, and that
// this process goes on after it was stopped.
func (a *attended) terminalSignals(ctx context.Context, person *relay.Terminal, rel *relay.Relay, near *os.File) (do <-chan func(), stop func()) {
	got := make(chan os.Signal, 4)
	signal.Notify(got, syscall.SIGWINCH, syscall.SIGCONT)
	out, over := make(chan func()), make(chan struct{})
	resize := func() {
		rel.Resize()
		if s, err := pty.GetSize(near); err == nil {
			_ = a.t.Resize(ctx, s.Cols, s.Rows) // a connection that is lost is seen by who reads it
		}
	}
	again := func() {
		if !person.Foreground() {
			rel.Revoke()
			return
		}
		rel.Grant()
		rel.Regain()
		resize()
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			fn := resize
			select {
			case sig := <-got:
				if sig == syscall.SIGCONT {
					fn = again
				}
			case <-over:
				return
			}
			select {
			case out <- fn:
			case <-over:
				return
			}
		}
	}()
	return out, func() {
		signal.Stop(got)
		close(over)
		<-done
	}
}

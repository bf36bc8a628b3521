package vercel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"syscall"
	"time"

	"egressd/sandbox/vercel/api"
)

// A program gets a terminal there when the standard input and output are one
// here: the person's is made raw, keys and output travel over a WebSocket, and
// what a terminal does with them is done there. There is no way back to a program
// whose connection is lost, so that its loss ends the run.

// Times of a terminal's connection.
const (
	terminalPing   = 30 * time.Second       // between two checks that the other side is there
	endEvery       = 200 * time.Millisecond // between two looks whether a program has ended
	terminalSilent = 30 * time.Second       // it may take that long to answer one
)

// defaultTerm is the terminal's kind when nothing says it.
const defaultTerm = "xterm-256color"

var errTerminalLost = errors.New("the connection to the program's terminal was lost, which ended it")

// terminalRequest is the program to run on a terminal.
func (r *run) terminalRequest() (api.TerminalRequest, error) {
	argv, err := commandLine(r.spec)
	if err != nil {
		return api.TerminalRequest{}, err
	}
	env := environment(r.spec.Env)
	env["TERM"], env[markVariable] = cmp.Or(env["TERM"], defaultTerm), r.mark
	return api.TerminalRequest{Command: argv[0], Args: argv[1:], Env: env, Cwd: path.Join(r.session.workdir, r.place.dir)}, nil
}

// attended is a program on a terminal while it runs.
type attended struct {
	*run
	t    *api.Terminal
	ends chan ending // gets one from each of the goroutines, at most
}

// ending is why a program on a terminal is over.
type ending struct {
	code *int
	err  error
}

// guarded runs fn, and reports a panic in it: the terminal is given back before
// this process ends.
func (a *attended) guarded(fn func() ending) {
	defer func() {
		if p := recover(); p != nil {
			a.ends <- ending{err: fmt.Errorf("a bug in launch: %v", p)}
		}
	}()
	a.ends <- fn()
}

// show passes the program's output to write until it ends.
func (a *attended) show(ctx context.Context, write func([]byte) error) ending {
	for {
		data, code, err := a.t.Read(ctx)
		switch {
		case err != nil:
			return ending{err: fmt.Errorf("%w: %w", errTerminalLost, err)}
		case code != nil:
			return ending{code: code}
		}
		if err := write(data); err != nil {
			return ending{err: err}
		}
	}
}

// check finds out when the other side does not answer any more.
func (a *attended) check(ctx context.Context) ending {
	tick := time.NewTicker(terminalPing)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ending{err: ctx.Err()}
		case <-tick.C:
		}
		ping, done := context.WithTimeout(ctx, terminalSilent)
		err := a.t.Alive(ping)
		done()
		if err != nil {
			return ending{err: fmt.Errorf("%w: %w", errTerminalLost, err)}
		}
	}
}

// await waits for the end of the program. other gets signals that are not for it.
func (a *attended) await(ctx context.Context, other <-chan func()) error {
	var limit <-chan time.Time
	if t := a.spec.Timeout; t > 0 {
		timer := time.NewTimer(t)
		defer timer.Stop()
		limit = timer.C
	}
	for {
		select {
		case e := <-a.ends:
			return a.ended(ctx, e)
		case do := <-other:
			do()
		case <-limit:
			a.session.loose = true
			a.res.TimedOut, a.res.ExitCode = true, exitTimeout
			return nil
		case sig := <-a.signals.c:
			a.signals.note(sig)
			a.session.loose = true
			return nil // the exit code follows from the signal
		case <-ctx.Done():
			a.session.loose = true
			return ctx.Err()
		}
	}
}

// endGroup waits for the end of a program whose terminal hung up, and kills it when
// its grace is over: what it changed is not brought back while it goes on. What is
// in no group of its own is found, too late, when the sandbox stops.
func (r *run) endGroup(ctx context.Context) {
	grace := cmp.Or(max(r.spec.Grace, 0), defaultGrace)
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), grace+killTime)
	defer done()
	over := time.After(grace)
	tick := time.NewTicker(endEvery)
	defer tick.Stop()
	for sig := syscall.SIGHUP; r.signalGroup(ctx, sig) == nil && sig != syscall.SIGKILL; {
		sig = 0 // is it there?
		select {
		case <-over:
			sig = syscall.SIGKILL
		case <-tick.C:
		}
	}
}

func (a *attended) ended(ctx context.Context, e ending) error {
	if e.err == nil {
		a.res.ExitCode = *e.code & 0xff
		return nil
	}
	a.session.loose = true
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), killTime)
	defer done()
	if s, _, err := a.Client.Session(ctx, a.session.id); api.IsGone(err) || err == nil && s.Status != api.Running {
		a.session.gone = true
		return fmt.Errorf("the sandbox ended while the program ran, and what it changed is lost: %w", e.err)
	}
	if errors.Is(e.err, syscall.EPIPE) || errors.Is(e.err, syscall.EIO) {
		a.res.ExitCode = exitSignal + int(syscall.SIGHUP) // the person's terminal has gone
		return nil
	}
	return e.err
}

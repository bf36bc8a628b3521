package api

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"
)

// Limits of one attempt at a call. Each attempt has its own, so that one
// connection on which nothing comes does not use up the time of the others.
const (
	quickTimeout  = 30 * time.Second  // of what is answered at once
	createTimeout = 100 * time.Second // a machine boots
	slowTimeout   = 5 * time.Minute   // stop, snapshot, delete: the service blocks until it is done
	quietTime     = 45 * time.Second  // of what has no limit as a whole: between two bytes of it
	unpackTime    = 90 * time.Second  // the same of an archive that is sent, and then unpacked there
)

// silentError reports that nothing came from the service for so long.
type silentError struct{ after time.Duration }

func (e *silentError) Error() string {
	return "nothing came from the service for " + e.after.Round(time.Second).String()
}

// Timeout makes it a timeout of package net.
func (e *silentError) Timeout() bool { return true }

func isSilent(err error) bool {
	var s *silentError
	return errors.As(err, &s)
}

// guard ends an attempt that takes too long.
//
// Threat: the service, or something on the way to it, stops in the middle of an
// answer and keeps the connection; launch waits, and prolongs a session that is
// paid for -> an attempt has a limit: as a whole, or where its length is not
// known, for each time in which no byte moves. Left over: a service that says a
// command is running when it is not.
type guard struct {
	ctx    context.Context // of the attempt; its cause is a *silentError when the guard ended it
	end    context.CancelCauseFunc
	limit  time.Duration
	slides bool // the limit is for each silence, not for all

	mu    sync.Mutex
	timer *time.Timer
	turn  int                        // counts what came
	ask   func(context.Context) bool // whether to go on waiting after a silence; nil: no
}

// guarded begins an attempt; stop ends its context.
func guarded(ctx context.Context, limit time.Duration, slides bool) *guard {
	g := &guard{limit: limit, slides: slides}
	g.ctx, g.end = context.WithCancelCause(ctx)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.timer = time.AfterFunc(limit, g.fire)
	return g
}

func (g *guard) stop() {
	g.mu.Lock()
	g.timer.Stop()
	g.mu.Unlock()
	g.end(nil)
}

// moved notes that a byte was sent or is expected now.
func (g *guard) moved() {
	if g.slides {
		g.mu.Lock()
		g.timer.Reset(g.limit)
		g.mu.Unlock()
	}
}

// rest notes that something came, so that it is not the service that is waited for.
func (g *guard) rest() {
	if g.slides {
		g.mu.Lock()
		g.timer.Stop()
		g.turn++
		g.mu.Unlock()
	}
}

// asking lets ask say whether to go on waiting after a silence.
func (g *guard) asking(ask func(context.Context) bool) {
	g.mu.Lock()
	g.ask = ask
	g.mu.Unlock()
}

func (g *guard) fire() {
	g.mu.Lock()
	turn, ask := g.turn, g.ask
	g.mu.Unlock()
	more := ask != nil && ask(g.ctx)
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case turn != g.turn: // something came meanwhile
	case more:
		g.timer.Reset(g.limit)
	default:
		g.end(&silentError{g.limit})
	}
}

// cause is err, or the silence that led to it.
func (g *guard) cause(err error) error {
	var s *silentError
	if err != nil && !errors.Is(err, io.EOF) && errors.As(context.Cause(g.ctx), &s) {
		return s
	}
	return err
}

// sent is the body of a request under g.
type sent struct {
	io.Reader
	g *guard
}

func (s sent) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	s.g.moved()
	return n, err
}

func (s sent) Close() error {
	if c, ok := s.Reader.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// received is the body of an answer under g. Only waiting for the service
// counts: not the time that its reader takes.
type received struct {
	io.ReadCloser
	g *guard
}

func (r received) Read(p []byte) (int, error) {
	r.g.moved()
	n, err := r.ReadCloser.Read(p)
	r.g.rest()
	return n, r.g.cause(err)
}

func (r received) Close() error {
	defer r.g.stop()
	return r.ReadCloser.Close()
}

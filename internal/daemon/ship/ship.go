// Package ship carries the lines of an events file to a collector, behind the file:
// what is in the file arrives, at least once, however often either side stops.
//
//	s := ship.Shipper{Events: "/var/log/egressd/events.jsonl", State: "/var/lib/egressd/shipped", Send: client.Send, Log: log}
//	err := s.Run(ctx, false)
//
// The file is the spool: nothing else is kept, and egressd waits for nobody. How far
// lines were taken is written down after each batch; boot and seq, in every line, tell
// a reader which ones came twice.
package ship

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// Implementation constants.
const (
	maxLines = 512
	maxBytes = 1 << 20 // of a batch, and of a line
	lookEach = time.Second
	firstTry = time.Second // between two tries, doubled up to
	lastTry  = 30 * time.Second
	sayAgain = time.Minute
)

// Shipper carries one events file. It is used by one goroutine.
type Shipper struct {
	Events string // the file that is appended to; rotated ones lie beside it, as Events.SOMETHING
	State  string // a file that remembers how far lines were taken; made when it is missing

	// Send delivers lines, without their line feeds, which are its own until it returns.
	// Nil: they were taken. An [*Unwanted]: they never will be. Any other error: not now.
	Send func(ctx context.Context, lines [][]byte) error
	// Sent is told of each batch that was taken; nil: nobody is.
	Sent func(lines int)
	Log  *slog.Logger

	said time.Time // when a failure was logged last
}

// Unwanted is the error of lines that their receiver will never take.
type Unwanted struct {
	Why  string
	Some bool // the others of these lines were taken
}

func (u *Unwanted) Error() string { return u.Why }

// RetryAfter is an error whose receiver says when to try again.
type RetryAfter struct {
	Err  error
	Wait time.Duration
}

func (r *RetryAfter) Error() string { return r.Err.Error() }

// Run ships until ctx ends, or, once, until all that is there was taken. Whatever
// cannot be delivered now is tried again. The error is ctx's, or about files.
func (s *Shipper) Run(ctx context.Context, once bool) error {
	at, err := readPosition(s.State)
	if err != nil {
		return fmt.Errorf("%s: %w; remove it to ship everything that is there again", s.State, err)
	}
	t := tail{events: s.Events, state: s.State, at: at, log: s.Log}
	defer t.close()
	for {
		lines, err := t.next()
		if err != nil {
			return err
		}
		if len(lines) == 0 {
			if once {
				return nil
			}
			if err := pause(ctx, lookEach); err != nil {
				return err
			}
			continue
		}
		if err := s.deliver(ctx, lines); err != nil {
			return err
		}
		if err := writePosition(s.State, t.at); err != nil {
			return err
		}
		if s.Sent != nil {
			s.Sent(len(lines))
		}
	}
}

// deliver sends lines until they were taken. Of what is unwanted, every line that is
// wanted by itself is taken.
func (s *Shipper) deliver(ctx context.Context, lines [][]byte) error {
	err := s.try(ctx, lines)
	var u *Unwanted
	switch {
	case err == nil || !errors.As(err, &u):
		return err
	case u.Some:
		s.Log.Error(u.Why)
		return nil
	case len(lines) == 1:
		s.Log.Error("a line is not taken, and is left out: "+u.Why, slog.String("line", string(lines[0][:min(len(lines[0]), 300)])))
		return nil
	}
	half := len(lines) / 2
	if err := s.deliver(ctx, lines[:half]); err != nil {
		return err
	}
	return s.deliver(ctx, lines[half:])
}

// try sends lines until they were taken, or are unwanted.
func (s *Shipper) try(ctx context.Context, lines [][]byte) error {
	for wait := firstTry; ; wait = min(2*wait, lastTry) {
		err := s.Send(ctx, lines)
		var u *Unwanted
		if err == nil || errors.As(err, &u) {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if now := time.Now(); now.Sub(s.said) >= sayAgain {
			s.said = now
			s.Log.Warn("events wait in their file: " + err.Error())
		}
		var later *RetryAfter
		if errors.As(err, &later) {
			wait = min(max(wait, later.Wait), lastTry*10)
		}
		if err := pause(ctx, wait); err != nil {
			return err
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

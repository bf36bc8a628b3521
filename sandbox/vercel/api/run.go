package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// Run starts a command, passes on its output and waits for its end. started,
// which may be nil, is called once with the command when it is known. The command
// is started at most once; a stream that breaks off is resumed after the last
// byte. When ctx ends, the command still runs: see Kill.
func (c *Client) Run(ctx context.Context, session string, r CommandRequest, started func(*Command), out Output) (*Command, error) {
	const op = "run command"
	in, err := r.body(true)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", op, err)
	}
	f := newFollower(out)
	for attempt := 0; ; attempt++ {
		began := c.now()
		k, done, err := c.attached(ctx, session, in, started, f)
		var unknown *UnknownOutcomeError
		switch {
		case err == nil && done:
			return k, nil
		case k != nil && isBroken(err) && ctx.Err() == nil:
			return c.recover(ctx, session, k.ID, f)
		case !errors.As(err, &unknown) || ctx.Err() != nil:
			return k, err
		}
		k, err = c.adopt(ctx, session, r, began, unknown)
		if errors.Is(err, errNotThere) && attempt < retries {
			continue
		}
		if err != nil {
			return nil, err
		}
		if started != nil {
			started(k)
		}
		return c.recover(ctx, session, k.ID, f)
	}
}

// attached asks for a command and reads its stream. k is the command as last
// reported; done means that it has ended.
func (c *Client) attached(ctx context.Context, session string, in any, started func(*Command), f *follower) (k *Command, done bool, err error) {
	const op = "run command"
	l, err := c.stream(ctx, call{op: op, method: http.MethodPost, in: in, repeat: whenRefused}, session, "/cmd")
	if err != nil {
		return nil, false, err
	}
	defer l.close()
	if k, err = c.first(l, started); err != nil {
		if isBroken(err) {
			err = &UnknownOutcomeError{Op: op, Err: early("before the command was reported", err, session)}
		}
		return nil, false, err
	}
	l.asking(session, k.ID)
	k, err = c.rest(ctx, l, k, f)
	return k, err == nil, err
}

// first reads the line that reports the command.
func (c *Client) first(l *lines, started func(*Command)) (*Command, error) {
	in, err := l.next()
	if err != nil {
		return nil, err
	}
	if in.command == nil || in.command.ID == "" {
		return nil, &Error{Op: l.op, SessionID: l.session, Code: CodeStreamEnded, Message: "the stream does not begin with the command"}
	}
	c.know(in.command.ID)
	if started != nil {
		started(in.command)
	}
	return in.command, nil
}

// rest reads until the line with the exit code. It returns k if the stream breaks
// off.
func (c *Client) rest(ctx context.Context, l *lines, k *Command, f *follower) (*Command, error) {
	for {
		in, err := l.next()
		switch {
		case errors.Is(err, io.EOF):
			return k, early("before the command had ended", err, l.session)
		case err != nil && ctx.Err() != nil:
			return k, fmt.Errorf("%s: %w", l.op, context.Cause(ctx))
		case err != nil:
			return k, err
		case in.command != nil && in.command.Exited():
			return in.command, nil
		case in.command == nil:
			if err := f.take(in); err != nil {
				return k, err
			}
		}
	}
}

func early(when string, err error, session string) *Error {
	return &Error{Op: "run command", SessionID: session, Code: CodeStreamEnded, Message: "the stream ended " + when + ": " + err.Error()}
}

// recover goes on with a command whose stream broke: the rest of what it prints,
// then its exit code. Logs that end before the command does are read again after
// it.
func (c *Client) recover(ctx context.Context, session, id string, f *follower) (*Command, error) {
	if err := c.follow(ctx, session, id, f); err != nil {
		return nil, err
	}
	k, err := c.Command(ctx, session, id)
	if err != nil || k.Exited() {
		return k, err
	}
	if k, err = c.Wait(ctx, session, id); err != nil {
		return nil, err
	}
	return k, c.follow(ctx, session, id, f)
}

// Attach passes on all output of a command from its start, whichever client
// started it, and waits for its end.
func (c *Client) Attach(ctx context.Context, session, id string, out Output) (*Command, error) {
	return c.recover(ctx, session, id, newFollower(out))
}

package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"syscall"
	"time"
)

// CommandRequest is a process to be started.
type CommandRequest struct {
	Command string            `json:"command"` // looked up in $PATH; not a line for a shell
	Args    []string          `json:"args"`
	Cwd     string            `json:"cwd,omitempty"`     // "": the session's
	Env     map[string]string `json:"env"`               // over the sandbox's
	Sudo    bool              `json:"sudo"`              // as root
	Timeout Millis            `json:"timeout,omitempty"` // the service kills it then; 100 at least
}

// body is what goes out: args and env always do.
func (r CommandRequest) body(wait bool) (any, error) {
	switch {
	case r.Command == "":
		return nil, invalid("a command has no name")
	case r.Timeout != 0 && r.Timeout < 100:
		return nil, invalid("a timeout of %d ms is less than 100", r.Timeout)
	}
	if r.Args == nil {
		r.Args = []string{}
	}
	if r.Env == nil {
		r.Env = map[string]string{}
	}
	return struct {
		CommandRequest
		Wait bool `json:"wait,omitempty"`
		Logs bool `json:"logs,omitempty"`
	}{r, wait, wait}, nil
}

type commandAnswer struct {
	Command Command `json:"command"`
}

// Start starts a command and does not wait for it. It is started once at most:
// when the answer is lost, Start searches the session's commands for it. If it is
// not there the error is an UnknownOutcomeError; if the service had answered that
// it failed, Start sends the request again.
func (c *Client) Start(ctx context.Context, session string, r CommandRequest) (*Command, error) {
	const op = "start command"
	in, err := r.body(false)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", op, err)
	}
	for attempt := 0; ; attempt++ {
		began := c.now()
		var a commandAnswer
		err = c.session(ctx, call{op: op, method: http.MethodPost, in: in, repeat: whenRefused}, session, "/cmd", &a)
		var unknown *UnknownOutcomeError
		if errors.As(err, &unknown) {
			k, err := c.adopt(ctx, session, r, began, unknown)
			if errors.Is(err, errNotThere) && attempt < retries {
				continue
			}
			return k, err
		}
		if err != nil {
			return nil, err
		}
		c.know(a.Command.ID)
		return &a.Command, nil
	}
}

// knownMax bounds the commands that a client remembers.
const knownMax = 100_000

// know remembers a command as one that this client has already.
func (c *Client) know(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.seen) < knownMax {
		c.seen[id] = true
	}
}

// adopt searches for the command of a lost answer: one that was started since,
// with the same arguments, and that this client did not know. It is adopted only
// if there is exactly one. The error wraps errNotThere if the service said that
// it had failed and the command does not exist: another attempt is then safe. A
// connection that broke, and a gateway that gave up waiting, leave open what is
// still on its way.
func (c *Client) adopt(ctx context.Context, session string, r CommandRequest, began time.Time, lost *UnknownOutcomeError) (*Command, error) {
	const looks = 3
	const slack = 5 * time.Second // the service's Date header has whole seconds
	absent := false
	for look := range looks {
		all, err := c.Commands(ctx, session)
		if err != nil {
			return nil, errors.Join(lost, err)
		}
		since := c.serviceTime(began).Add(-slack)
		var like []Command
		for _, k := range all {
			if k.Name == r.Command && slices.Equal(k.Args, r.Args) && (r.Cwd == "" || k.Cwd == r.Cwd) && !k.StartedAt.Time().Before(since) && !c.knows(k.ID) {
				like = append(like, k)
			}
		}
		if len(like) == 1 {
			c.know(like[0].ID)
			return &like[0], nil
		}
		if absent = len(like) == 0; !absent {
			break
		}
		if wait, _ := c.backoff(nil, min(look, retries-1)); pause(ctx, wait) != nil {
			break
		}
	}
	var e *Error
	if absent && ctx.Err() == nil && errors.As(lost, &e) && e.open() && e.Status != http.StatusGatewayTimeout {
		return nil, fmt.Errorf("%w: %w", errNotThere, lost)
	}
	return nil, lost
}

var errNotThere = errors.New("the command was not started")

func (c *Client) knows(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seen[id]
}

// Commands lists the commands of a session.
func (c *Client) Commands(ctx context.Context, session string) ([]Command, error) {
	var a struct {
		Commands []Command `json:"commands"`
	}
	err := c.session(ctx, call{op: "list commands", method: http.MethodGet, repeat: always}, session, "/cmd", &a)
	return a.Commands, err
}

// Command reports a command as it is now.
func (c *Client) Command(ctx context.Context, session, id string) (*Command, error) {
	return c.command(ctx, call{op: "get command", method: http.MethodGet, repeat: always}, session, id, "")
}

// Wait waits until a command ends, without a limit of its own.
func (c *Client) Wait(ctx context.Context, session, id string) (*Command, error) {
	r := call{op: "wait for command", method: http.MethodGet, query: map[string][]string{"wait": {"true"}}, repeat: always, timeout: quietTime, once: true}
	for tries := 0; ; tries++ {
		k, err := c.command(ctx, r, session, id, "")
		if err != nil && isBroken(err) && ctx.Err() == nil {
			k, err = c.Command(ctx, session, id) // a gateway, or somebody else, gave up waiting
		}
		switch {
		case err == nil && k.Exited():
			return k, nil
		case err == nil:
			tries = 0
		case !isBroken(err) || ctx.Err() != nil || tries >= silences:
			return nil, err
		}
		if err := pause(ctx, pollEvery); err != nil {
			return nil, fmt.Errorf("wait for command: %w", err)
		}
	}
}

// Kill sends a signal to a command. It is still running in the answer, mostly.
func (c *Client) Kill(ctx context.Context, session, id string, signal syscall.Signal) (*Command, error) {
	in := map[string]int{"signal": int(signal)}
	return c.command(ctx, call{op: "kill command", method: http.MethodPost, in: in, repeat: always}, session, id, "/kill")
}

func (c *Client) command(ctx context.Context, r call, session, id, after string) (*Command, error) {
	at, err := idPath("/cmd/", "command id", id, after)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.op, err)
	}
	var a commandAnswer
	err = c.session(ctx, r, session, at, &a)
	return &a.Command, err
}

package api

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"time"

	"egressd/sandbox/vercel/api/firewall"
)

func trimSlash(s string) string { return strings.TrimRight(s, "/") }

// session makes a call about one session.
func (c *Client) session(ctx context.Context, r call, id, after string, out any) error {
	at, err := idPath("/v2/sandboxes/sessions/", "session id", id, after)
	if err != nil {
		return fmt.Errorf("%s: %w", r.op, err)
	}
	r.path, r.session = at, id
	return c.do(ctx, r, out)
}

// Session reports a session and the routes to its ports.
func (c *Client) Session(ctx context.Context, id string) (*Session, []Route, error) {
	var a struct {
		Session Session `json:"session"`
		Routes  []Route `json:"routes"`
	}
	err := c.session(ctx, call{op: "get session", method: http.MethodGet, repeat: always}, id, "", &a)
	return &a.Session, a.Routes, err
}

// Sessions lists sessions; with ListOptions.Name those of one sandbox.
func (c *Client) Sessions(ctx context.Context, o ListOptions) iter.Seq2[Session, error] {
	q := o.plain(c.project())
	r := call{op: "list sessions", method: http.MethodGet, path: "/v2/sandboxes/sessions", query: q, repeat: always}
	return list(ctx, r, "cursor", func(ctx context.Context, r call) ([]Session, string, error) {
		var p struct {
			page
			Sessions []Session `json:"sessions"`
		}
		err := c.do(ctx, r, &p)
		return p.Sessions, p.next(), err
	})
}

// plain is the query of lists that accept only a name and an order.
func (o ListOptions) plain(project string) url.Values {
	q := o.query(project)
	for _, k := range []string{"namePrefix", "sortBy", "status", "tags"} {
		q.Del(k)
	}
	return q
}

// pollEvery is the interval of checks on a session that boots.
const pollEvery = 300 * time.Millisecond

// WaitRunning waits until a session runs. One that ends instead is an Error.
func (c *Client) WaitRunning(ctx context.Context, id string) (*Session, error) {
	for {
		s, _, err := c.Session(ctx, id)
		if err != nil {
			return nil, err
		}
		switch {
		case s.Status == Running:
			return s, nil
		case s.Status.Final() || s.Status == Stopping || s.Status == Snapshotting:
			return nil, &Error{Op: "start session", SessionID: id, Message: "the session is " + string(s.Status)}
		}
		if err := pause(ctx, pollEvery); err != nil {
			return nil, fmt.Errorf("start session: it is %s: %w", s.Status, err)
		}
	}
}

// StopResult is what stopping left.
type StopResult struct {
	Session  Session   `json:"session"`
	Sandbox  *Sandbox  `json:"sandbox"`
	Snapshot *Snapshot `json:"snapshot"` // nil: none was taken
}

// Stop ends a session; it returns when it has ended. Stopping one that has
// already ended is not an error.
func (c *Client) Stop(ctx context.Context, id string) (*StopResult, error) {
	var r StopResult
	err := c.session(ctx, call{op: "stop session", method: http.MethodPost, repeat: always, timeout: slowTimeout}, id, "/stop", &r)
	return &r, err
}

// Extend prolongs a session by d, at least a second. After an
// UnknownOutcomeError, check the session's Timeout.
func (c *Client) Extend(ctx context.Context, id string, d time.Duration) (*Session, error) {
	if d < time.Second {
		return nil, fmt.Errorf("extend timeout: %w", invalid("%v is less than a second", d))
	}
	return c.changed(ctx, call{op: "extend timeout", in: map[string]Millis{"duration": MillisOf(d)}}, id, "/extend-timeout")
}

// SetNetworkPolicy replaces the policy of a session that runs, at once.
func (c *Client) SetNetworkPolicy(ctx context.Context, id string, p *firewall.Policy) (*Session, error) {
	if p == nil {
		p = &firewall.Policy{}
	}
	if err := validPolicy(p); err != nil {
		return nil, fmt.Errorf("set network policy: %w", err)
	}
	return c.changed(ctx, call{op: "set network policy", in: p, repeat: always}, id, "/network-policy")
}

func (c *Client) changed(ctx context.Context, r call, id, after string) (*Session, error) {
	r.method = http.MethodPost
	var a struct {
		Session Session `json:"session"`
	}
	err := c.session(ctx, r, id, after, &a)
	return &a.Session, err
}

// TakeSnapshot keeps the disk of a session, which ends by it. expires is nil for
// the service's default; 0 is never.
func (c *Client) TakeSnapshot(ctx context.Context, id string, expires *Millis) (*Snapshot, *Session, error) {
	if expires != nil && *expires != 0 && *expires < dayMillis {
		return nil, nil, fmt.Errorf("take snapshot: %w", invalid("snapshots expire after a day or later, or never (0)"))
	}
	in := struct {
		Expiration *Millis `json:"expiration,omitempty"`
	}{expires}
	var a struct {
		Snapshot Snapshot `json:"snapshot"`
		Session  Session  `json:"session"`
	}
	err := c.session(ctx, call{op: "take snapshot", method: http.MethodPost, in: &in, timeout: slowTimeout}, id, "/snapshot", &a)
	return &a.Snapshot, &a.Session, err
}

// Snapshot reports a snapshot; one that is gone is status 404 or 410.
func (c *Client) Snapshot(ctx context.Context, id string) (*Snapshot, error) {
	return c.snapshot(ctx, call{op: "get snapshot", method: http.MethodGet}, id)
}

// DeleteSnapshot removes a snapshot.
func (c *Client) DeleteSnapshot(ctx context.Context, id string) (*Snapshot, error) {
	return c.snapshot(ctx, call{op: "delete snapshot", method: http.MethodDelete, timeout: slowTimeout}, id)
}

func (c *Client) snapshot(ctx context.Context, r call, id string) (*Snapshot, error) {
	at, err := idPath("/v2/sandboxes/snapshots/", "snapshot id", id, "")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.op, err)
	}
	r.path, r.repeat = at, always
	var a struct {
		Snapshot Snapshot `json:"snapshot"`
	}
	err = c.do(ctx, r, &a)
	return &a.Snapshot, err
}

// Snapshots lists the snapshots of the project; with ListOptions.Name those of
// one sandbox.
func (c *Client) Snapshots(ctx context.Context, o ListOptions) iter.Seq2[Snapshot, error] {
	r := call{op: "list snapshots", method: http.MethodGet, path: "/v2/sandboxes/snapshots", query: o.plain(c.project()), repeat: always}
	return list(ctx, r, "cursor", func(ctx context.Context, r call) ([]Snapshot, string, error) {
		var p struct {
			page
			Snapshots []Snapshot `json:"snapshots"`
		}
		err := c.do(ctx, r, &p)
		return p.Snapshots, p.next(), err
	})
}

// TreeNode is a snapshot in the history of one.
type TreeNode struct {
	Snapshot Snapshot   `json:"snapshot"`
	Siblings []Snapshot `json:"siblings"`
	Count    Int        `json:"count"`
}

// SnapshotTree reports what a snapshot was made from, step by step, and with
// ListOptions.SortOrder "asc" what was made from it. The snapshot itself is not
// among them.
func (c *Client) SnapshotTree(ctx context.Context, id string, o ListOptions) iter.Seq2[TreeNode, error] {
	q := o.plain(c.project())
	q.Del("name")
	q.Set("snapshotId", id)
	r := call{op: "get snapshot tree", method: http.MethodGet, path: "/v2/sandboxes/snapshots/tree", query: q, repeat: always}
	return list(ctx, r, "snapshotId", func(ctx context.Context, r call) ([]TreeNode, string, error) {
		var p struct {
			page
			Snapshots []TreeNode `json:"snapshots"`
		}
		err := c.do(ctx, r, &p)
		return p.Snapshots, p.next(), err
	})
}

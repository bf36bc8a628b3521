package api

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"time"

	"egressd/sandbox/vercel/api/firewall"
)

// Create makes a sandbox and boots it. After a failure that leaves open whether
// it was made, it searches for one of that name that is no older than the
// request, and adopts it. A name that is in use is an Error with status 409; if
// it is the caller's own, that is one more such failure.
func (c *Client) Create(ctx context.Context, r CreateRequest) (*Instance, error) {
	if r.Name == "" {
		var b [10]byte
		_, _ = rand.Read(b[:]) // it does not fail
		r.Name = "egressd-" + hex.EncodeToString(b[:])
	}
	if r.Ports == nil {
		r.Ports = []int{}
	}
	if r.ProjectID == "" {
		r.ProjectID = c.project()
	}
	if r.NetworkPolicy == nil {
		r.NetworkPolicy = &firewall.Policy{}
	}
	if err := r.Validate(); err != nil {
		return nil, fmt.Errorf("create sandbox: %w", err)
	}
	at := "/v3/sandboxes"
	if r.Runtime != "" {
		at = "/v2/sandboxes"
	}
	return c.make(ctx, call{op: "create sandbox", method: http.MethodPost, path: at, in: &r, timeout: createTimeout}, r.Name, r.Own)
}

// Fork makes a sandbox from another one's state. r's zero fields are as there.
func (c *Client) Fork(ctx context.Context, from string, r ForkRequest) (*Instance, error) {
	at, err := idPath("/v2/sandboxes/", "sandbox name", from, "/fork")
	if err != nil {
		return nil, err
	}
	if r.Name == "" {
		var b [10]byte
		_, _ = rand.Read(b[:]) // it does not fail
		r.Name = "egressd-" + hex.EncodeToString(b[:])
	}
	full := CreateRequest{
		Name: r.Name, Ports: r.Ports, Timeout: r.Timeout, Resources: r.Resources, Image: r.Image, NetworkPolicy: r.NetworkPolicy, Tags: r.Tags,
		SnapshotExpiration: r.SnapshotExpiration, KeepLastSnapshots: r.KeepLastSnapshots,
	}
	if err := full.Validate(); err != nil {
		return nil, fmt.Errorf("fork sandbox: %w", err)
	}
	return c.make(ctx, call{op: "fork sandbox", method: http.MethodPost, path: at, query: c.byName(), in: &r, timeout: createTimeout}, r.Name, false)
}

// How long an image that is being prepared is waited for.
const (
	imageEvery = 2 * time.Second
	imageLooks = 60
)

// make asks for a sandbox called name until it is clear whether there is one. own
// says that nobody else makes one of that name.
func (c *Client) make(ctx context.Context, r call, name string, own bool) (*Instance, error) {
	began := c.now()
	doubt := own // an earlier attempt, or something on the way that sent it twice, may have made it
	for attempt, looks := 0, 0; ; attempt++ {
		var made Instance
		err := c.do(ctx, r, &made)
		if err == nil {
			return &made, nil
		}
		var unknown *UnknownOutcomeError
		var e *Error
		switch {
		case errors.As(err, &e) && e.Code == "image_not_ready" && looks < imageLooks:
			if pause(ctx, imageEvery) != nil {
				return nil, err
			}
			looks++
			attempt--
			continue
		case errors.As(err, &unknown):
			doubt = true
		case errors.As(err, &e) && e.Status == http.StatusConflict && doubt:
		default:
			return nil, err
		}
		if ctx.Err() != nil {
			return nil, err
		}
		found, ferr := c.made(ctx, name, began)
		if ferr == nil {
			return found, nil
		}
		if !errors.Is(ferr, fs.ErrNotExist) || attempt >= retries {
			return nil, errors.Join(err, ferr)
		}
		wait, _ := c.backoff(nil, attempt)
		if pause(ctx, wait) != nil {
			return nil, err
		}
	}
}

// made finds the sandbox that an earlier attempt has made.
//
// Threat: the name was somebody else's before, and their sandbox is taken for
// ours, used and deleted -> it counts only when it was created after the first
// attempt began, by the service's clock -> one made in the same seconds.
func (c *Client) made(ctx context.Context, name string, began time.Time) (*Instance, error) {
	const slack = 5 * time.Second // the service's Date header has whole seconds
	found, err := c.Get(ctx, name, false)
	if err != nil {
		return nil, err
	}
	if found.Sandbox.CreatedAt.Time().Before(c.serviceTime(began).Add(-slack)) {
		return nil, invalid("a sandbox called %s was there before", name)
	}
	return found, nil
}

func (c *Client) byName() url.Values { return url.Values{"projectId": {c.project()}} }

// Get reports a sandbox. resume boots one that is stopped from its last snapshot;
// Instance.Resumed says that this was done.
func (c *Client) Get(ctx context.Context, name string, resume bool) (*Instance, error) {
	at, err := idPath("/v2/sandboxes/", "sandbox name", name, "")
	if err != nil {
		return nil, err
	}
	q := c.byName()
	timeout := quickTimeout
	if resume {
		q.Set("resume", "true")
		timeout = slowTimeout
	}
	var found Instance
	err = c.do(ctx, call{op: "get sandbox", method: http.MethodGet, path: at, query: q, repeat: always, timeout: timeout}, &found)
	return &found, err
}

// Update changes the configuration of later sessions.
func (c *Client) Update(ctx context.Context, name string, r UpdateRequest) (*Instance, error) {
	at, err := idPath("/v2/sandboxes/", "sandbox name", name, "")
	if err != nil {
		return nil, err
	}
	if err := validPolicy(r.NetworkPolicy); err != nil {
		return nil, fmt.Errorf("update sandbox: %w", err)
	}
	var changed Instance
	err = c.do(ctx, call{op: "update sandbox", method: http.MethodPatch, path: at, query: c.byName(), in: &r, repeat: always}, &changed)
	return &changed, err
}

// Delete removes a sandbox; a running session is stopped first. orphans removes
// the snapshots that nothing else needs. One that is not there is an error that
// is fs.ErrNotExist.
func (c *Client) Delete(ctx context.Context, name string, orphans bool) error {
	at, err := idPath("/v2/sandboxes/", "sandbox name", name, "")
	if err != nil {
		return err
	}
	q := c.byName()
	if orphans {
		q.Set("deleteOrphanSnapshots", "true")
	}
	return c.do(ctx, call{op: "delete sandbox", method: http.MethodDelete, path: at, query: q, repeat: always, timeout: slowTimeout}, nil)
}

// PortURL is where a published port is reached, without a slash at the end; ok
// is false for a port that is not published.
func PortURL(routes []Route, port int) (at string, ok bool) {
	for _, r := range routes {
		if int(r.Port) != port || r.System {
			continue
		}
		if r.URL != "" {
			return trimSlash(r.URL), true
		}
		return "https://" + r.Subdomain + ".vercel.run", r.Subdomain != ""
	}
	return "", false
}

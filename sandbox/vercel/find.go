package vercel

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"egressd/sandbox/vercel/api"
)

// HTTP statuses that are distinguished here.
const (
	badRequest   = 400
	conflict     = 409
	gone         = 410
	inTransition = 422
)

// patience is how long to wait for the answer to a create request after the run
// has ended.
const patience = 20 * time.Second

// create makes a sandbox and waits until it runs.
//
// Threat: a user presses Ctrl-C while a sandbox is being created, the request is
// dropped, and the sandbox runs with nothing to stop it -> the request is not
// dropped: create waits for its answer, and the sandbox is then deleted. Left
// over: a service that takes longer than patience; the session ends by itself.
func (r *run) create(ctx context.Context, req *api.CreateRequest) (*api.Instance, error) {
	r.made.name, r.session.id = req.Name, ""
	r.made.names = append(r.made.names, req.Name)
	patient, give := context.WithTimeout(context.WithoutCancel(ctx), 2*bootTime)
	defer give()
	defer context.AfterFunc(ctx, func() {
		<-after(patient, patience)
		give()
	})()
	made, err := r.Client.Create(patient, *req)
	r.made.doubt = err != nil && !definite(err)
	if err != nil {
		if !r.made.doubt { // nothing to delete
			r.made.name = ""
			r.made.names = r.made.names[:len(r.made.names)-1]
		}
		return nil, err
	}
	r.session.id = made.Session.ID
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return made, r.wait(ctx, made)
}

// after returns a channel that is closed after d or when ctx ends.
func after(ctx context.Context, d time.Duration) <-chan struct{} {
	ctx, stop := context.WithTimeout(ctx, d)
	context.AfterFunc(ctx, stop)
	return ctx.Done()
}

// definite reports an answer that proves that nothing was created.
func definite(err error) bool {
	var unknown *api.UnknownOutcomeError
	var e *api.Error
	return errors.Is(err, api.ErrInvalid) || !errors.As(err, &unknown) && errors.As(err, &e) && e.Status/100 == 4
}

// wait waits until the session of found runs.
func (r *run) wait(ctx context.Context, found *api.Instance) error {
	if found.Session.Status == api.Running {
		return nil
	}
	s, err := r.Client.WaitRunning(ctx, found.Session.ID)
	if err == nil {
		found.Session = *s
	}
	return err
}

// fresh makes a sandbox for this run, from the task's snapshot when it has one.
func (r *run) fresh(ctx context.Context) (*api.Instance, error) {
	name := "launch-" + strings.ToLower(r.Session)
	snapshot := ""
	if r.Task != "" && r.Tasks != nil {
		var err error
		if snapshot, err = r.Tasks.Snapshot(r.Task); err != nil {
			return nil, err
		}
	}
	if snapshot == "" {
		return r.create(ctx, r.request(name, r.place.root, nil))
	}
	made, err := r.create(ctx, r.request(name, r.place.root, &api.Source{Type: "snapshot", SnapshotID: snapshot}))
	if err == nil {
		r.disk.reused = true
		return made, nil
	}
	if ctx.Err() != nil || !broken(err) {
		return nil, err
	}
	r.say("the snapshot of task %s cannot be used, so this run begins anew: %v", r.Task, err)
	if err := r.Tasks.Drop(r.Task, snapshot); err != nil {
		return nil, err
	}
	return r.create(ctx, r.request(name+"-2", r.place.root, nil)) // the first may exist, half made
}

// broken reports a snapshot that will never boot, as opposed to a failing service
// or bad credentials.
func broken(err error) bool {
	var e *api.Error
	var unknown *api.UnknownOutcomeError
	if !errors.As(err, &e) || errors.As(err, &unknown) {
		return false
	}
	switch e.Status {
	case 0: // the session ended instead of running
		return true
	case 401, 402, 403, 408, conflict, 425, 429:
		return false
	}
	return e.Status/100 == 4
}

// missing reports a sandbox that does not exist.
func missing(err error) bool {
	var e *api.Error
	return errors.Is(err, fs.ErrNotExist) ||
		errors.As(err, &e) && e.Status/100 == 4 && strings.Contains(strings.ToLower(e.Message), "not found")
}

// named finds the sandbox of that name, or makes it.
func (r *run) named(ctx context.Context) (*api.Instance, error) {
	for tries := 0; ; tries++ {
		found, err := r.Client.Get(ctx, r.Name, false)
		switch {
		case missing(err):
			found, err = r.create(ctx, r.request(r.Name, r.place.root, nil))
			var e *api.Error
			if errors.As(err, &e) && e.Status == conflict && tries == 0 {
				continue // another run has made it meanwhile
			}
			if err == nil && MarkOf(found.Sandbox.Tags).Owner != "" { // it may be one that was made in the same second
				if foreign := r.Owner.foreign(found, r.place.root); foreign != nil {
					r.made.name, r.session.id = "", ""
					return nil, foreign
				}
			}
			return found, err
		case err != nil:
			return nil, err
		}
		adopting, err := r.entitled(found)
		if err != nil {
			return nil, err
		}
		found, err = r.again(ctx, found, adopting)
		if api.IsGone(err) && tries == 0 {
			continue // its session ended a moment ago
		}
		return found, err
	}
}

// again puts this run's policy on the sandbox that was found. A stopped sandbox
// boots with it; a running one gets it before anything of this run is sent.
func (r *run) again(ctx context.Context, found *api.Instance, adopting bool) (*api.Instance, error) {
	r.made.name, r.disk.reused = r.Name, true
	r.session.running = found.Session.Status == api.Running
	if r.session.running {
		r.session.id = found.Session.ID
	}
	change := api.UpdateRequest{NetworkPolicy: r.Policy(), KeepLastSnapshots: r.Snapshots.keep(), SnapshotExpiration: r.Snapshots.expiry()}
	if adopting || len(r.Tags) > 0 {
		change.Tags = r.tags(r.place.root)
	}
	if len(r.Ports) > 0 {
		change.Ports = &r.Ports
	}
	if r.VCPUs > 0 {
		change.Resources = &api.Resources{VCPUs: r.VCPUs}
	}
	if _, err := r.Client.Update(ctx, r.made.name, change); err != nil {
		return nil, err
	}
	if !r.session.running {
		var err error
		if found, err = r.resume(ctx); err != nil {
			return nil, err
		}
		if !r.disk.reused {
			return found, nil
		}
		r.session.id = found.Session.ID
	}
	if err := r.wait(ctx, found); err != nil {
		return nil, err
	}
	s, err := r.Client.SetNetworkPolicy(ctx, found.Session.ID, r.Policy())
	if err != nil {
		return nil, err
	}
	if s.ID == found.Session.ID && s.Cwd != "" {
		found.Session = *s
	}
	return found, nil
}

// resume boots the sandbox from its last snapshot. It waits for one that is
// stopping, and recreates one that has no snapshot that boots.
func (r *run) resume(ctx context.Context) (*api.Instance, error) {
	for {
		found, err := r.Client.Get(ctx, r.made.name, true)
		if err == nil {
			return found, nil
		}
		var e *api.Error
		if !errors.As(err, &e) {
			return nil, err
		}
		switch text := strings.ToLower(e.Code + " " + e.Message); {
		case api.IsGone(err) && e.Status == inTransition:
		case (e.Status == badRequest || e.Status == gone) && strings.Contains(text, "snapshot"):
			r.say("sandbox %s cannot go on from where it was, so it begins anew: %v", r.made.name, err)
			if err := r.Client.Delete(ctx, r.made.name, false); err != nil && !missing(err) {
				return nil, err
			}
			r.disk.reused = false
			return r.create(ctx, r.request(r.made.name, r.place.root, nil))
		default:
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("sandbox %s is still stopping: %w", r.made.name, err)
		case <-time.After(resumeEvery):
		}
	}
}

// resumeEvery is the interval of checks on a sandbox that is stopping.
const resumeEvery = 500 * time.Millisecond

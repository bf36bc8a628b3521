package vercel

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"egressd/sandbox/vercel/api"
)

// How long cleaning up may take.
const (
	stopTime = 15 * time.Second
	keepTime = 2 * time.Minute // if stopping saves the disk
)

// release stops what this run made, and deletes it unless it is kept. Failures
// are logged, since the run itself is over. Only a failed snapshot is an error:
// the task's next run depends on it. ctx may have ended.
func (r *run) release(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	if r.made.name == "" && (r.Name != "" || len(r.made.names) == 0) {
		return nil
	}
	if r.session.ready && !r.session.gone && (r.Name != "" || r.Task != "") {
		r.tidy(ctx)
	}
	stays := r.stays()
	if r.Left != nil {
		defer func() {
			r.used.Ran = r.program != ""
			if stays {
				r.used.Until = r.session.ends
			}
			r.Left(r.used)
		}()
	}
	if stays {
		return nil
	}
	if r.session.id == "" && r.Name != "" {
		r.session.id = r.unheard(ctx)
	}
	var err error
	if r.Task != "" && r.Tasks != nil && r.program != "" && !r.session.gone {
		err = r.snapshot(ctx)
	}
	if r.session.id != "" {
		r.stop(ctx)
	}
	if r.Name == "" {
		for i, name := range r.made.names {
			r.remove(ctx, name, r.made.doubt && i == len(r.made.names)-1)
		}
	}
	return err
}

// stays reports whether the session is left running.
func (r *run) stays() bool {
	switch {
	case r.Name == "" || r.session.id == "" || r.session.gone:
	case r.session.loose:
		if r.Keep {
			r.say("sandbox %s is stopped: what the program has left running could not be told from others", r.made.name)
		}
	case !r.session.ready:
		return r.session.running // as it was
	case r.Keep:
		r.linger()
		r.say("sandbox %s is left running until %s, and what it has on its disk is kept; end it now: launch sandbox stop %s",
			r.made.name, r.session.ends.Local().Format(time.TimeOnly), r.made.name)
		return true
	case r.Shared != nil && r.Shared():
		return true // the last one stops it
	}
	return false
}

// lingerTime is the least time for which a sandbox is left running.
const lingerTime = 30 * time.Minute

// linger extends the session of a sandbox that is left running to lingerTime.
func (r *run) linger() {
	ctx, done := context.WithTimeout(context.Background(), stopTime)
	defer done()
	if more := lingerTime - time.Until(r.session.ends); more > time.Second {
		if _, err := r.Client.Extend(ctx, r.session.id, more); err == nil {
			r.session.ends = r.session.ends.Add(more)
		}
	}
}

// unheard returns the session of a sandbox whose create request got no answer.
func (r *run) unheard(ctx context.Context) string {
	ctx, done := context.WithTimeout(ctx, stopTime)
	defer done()
	found, err := r.Client.Get(ctx, r.made.name, false)
	if err != nil || r.Owner.foreign(found, r.place.root) != nil {
		return ""
	}
	return found.Session.ID
}

func (r *run) stop(ctx context.Context) {
	limit := stopTime
	if r.Name != "" {
		limit = keepTime
	}
	ctx, done := context.WithTimeout(ctx, limit)
	defer done()
	stopped, err := r.Client.Stop(ctx, r.session.id)
	switch {
	case api.IsGone(err):
	case err != nil:
		r.log().Warn("the sandbox could not be stopped", "sandbox", r.made.name, "session", r.session.id, "error", err)
	default:
		s := stopped.Session
		r.used = Left{
			CPU: s.ActiveCPU.Duration(), Time: s.Duration.Duration(), VCPUs: int(s.VCPUs),
			In: int64(s.NetworkTransfer.Ingress), Out: int64(s.NetworkTransfer.Egress),
		}
		r.log().Info("sandbox stopped", "sandbox", r.made.name, "egress_bytes", r.used.Out)
	}
}

// removeTries bounds the attempts to delete a sandbox that may not exist yet.
const removeTries = 3

// remove deletes a sandbox. With doubt, one that does not exist may appear later.
func (r *run) remove(ctx context.Context, name string, doubt bool) {
	ctx, done := context.WithTimeout(ctx, stopTime)
	defer done()
	for try := 1; ; try++ {
		err := r.Client.Delete(ctx, name, r.Task == "")
		if err == nil {
			return
		}
		if !errors.Is(err, fs.ErrNotExist) {
			r.log().Warn("the sandbox could not be deleted", "sandbox", name, "error", err)
			return
		}
		if !doubt || try > removeTries {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Duration(try) * resumeEvery):
		}
	}
}

// snapshot leaves a snapshot for the task's next run, and deletes the one that it
// replaces.
func (r *run) snapshot(ctx context.Context) error {
	ctx, done := context.WithTimeout(ctx, keepTime)
	defer done()
	made, _, err := r.Client.TakeSnapshot(ctx, r.session.id, nil)
	if err != nil {
		return fmt.Errorf("snapshot of task %s: the next run begins where this one began: %w", r.Task, err)
	}
	if made.ID == "" {
		return fmt.Errorf("snapshot of task %s: vercel_snapshot_id_missing", r.Task)
	}
	old, err := r.Tasks.Set(r.Task, made.ID)
	if err != nil {
		return fmt.Errorf("snapshot of task %s: %w", r.Task, err)
	}
	if old != "" && old != made.ID {
		if _, err := r.Client.DeleteSnapshot(ctx, old); err != nil && !errors.Is(err, fs.ErrNotExist) && !api.IsGone(err) {
			r.log().Warn("an old snapshot could not be deleted", "snapshot", old, "error", err)
		}
	}
	return nil
}

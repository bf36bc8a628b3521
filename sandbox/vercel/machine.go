package vercel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"egressd/sandbox"
	"egressd/sandbox/vercel/api"
	"egressd/sandbox/vercel/api/firewall"
	"egressd/sandbox/vercel/network"
	"egressd/sandbox/vercel/stage"
)

// run is one run.
type run struct {
	*Backend
	spec    sandbox.Spec
	place   place
	res     *sandbox.Result
	signals *signals

	name    string // of the sandbox; "" until one may exist
	session string
	cwd     string // the session's own directory
	workdir string
	ends    time.Time // when the service ends the session
	reused  bool      // it was there before, with what it holds
	gone    bool      // the session has ended
	tree    *stage.Tree
	sending *meter
}

// Times of a session. The service ends one whose launcher died; while a program
// runs its session is prolonged.
const (
	spareTime   = 10 * time.Minute // for sending and bringing back
	bootTime    = 90 * time.Second
	prolongTime = 5 * time.Minute
)

// policy is the network policy in the service's terms.
func (b *Backend) policy() *firewall.Policy {
	n := b.Network
	if n == nil {
		n = &network.Network{}
	}
	p := &firewall.Policy{AllowAll: n.All}
	if n.All {
		return p
	}
	for _, name := range n.Names {
		d := firewall.Domain{Name: name}
		if headers := n.Headers[name]; len(headers) > 0 {
			d.Rules = []firewall.Rule{{Headers: headers}}
		}
		p.Domains = append(p.Domains, d)
	}
	for _, net := range n.AllowNets {
		p.AllowSubnets = append(p.AllowSubnets, net.String())
	}
	if !n.Denies() {
		for _, net := range n.DenyNets {
			p.DenySubnets = append(p.DenySubnets, net.String())
		}
	}
	return p
}

// request is the sandbox to be made.
func (b *Backend) request(name string, source *api.Source) *api.CreateRequest {
	persistent := b.Name != ""
	r := &api.CreateRequest{
		Name: name, Ports: b.Ports, Source: cmp.Or(source, b.Source), Timeout: api.MillisOf(spareTime), Runtime: b.Runtime, Image: b.Image,
		Persistent: &persistent, NetworkPolicy: b.policy(), Tags: b.Tags,
	}
	if r.Ports == nil {
		r.Ports = []int{}
	}
	if b.VCPUs > 0 {
		r.Resources = &api.Resources{VCPUs: b.VCPUs}
	}
	if r.Source != nil && r.Source.Type == "snapshot" {
		r.Runtime, r.Image = "", ""
	}
	return r
}

// acquire finds the sandbox of that name or makes one, and waits until it runs.
func (r *run) acquire(ctx context.Context) error {
	ctx, done := context.WithTimeout(ctx, 2*bootTime)
	defer done()
	found, err := r.find(ctx)
	if err != nil {
		return err
	}
	r.session, r.cwd = found.Session.ID, found.Session.Cwd
	if found.Session.Status != api.Running {
		s, err := r.Client.WaitRunning(ctx, r.session)
		if err != nil {
			return err
		}
		r.cwd = cmp.Or(s.Cwd, r.cwd)
		found.Session = *s
	}
	if err := r.verify(found); err != nil {
		return err
	}
	if !strings.HasPrefix(r.cwd, "/") {
		return fmt.Errorf("the sandbox does not say where its directory is (%q): name one with --vercel-workdir", r.cwd)
	}
	began := found.Session.StartedAt.Time()
	if began.IsZero() || time.Since(began) < 0 {
		began = time.Now()
	}
	r.ends = began.Add(cmp.Or(found.Session.Timeout.Duration(), spareTime))
	r.workdir = r.Backend.workdir(r.cwd)
	r.located("", found.Routes)
	return nil
}

// verify compares the policy that the service reports with the one that was
// sent. An answer that says nothing of it proves nothing.
func (r *run) verify(found *api.Instance) error {
	for _, state := range []*firewall.State{found.Session.NetworkPolicy, found.Sandbox.NetworkPolicy} {
		if state == nil {
			continue
		}
		var d *firewall.Difference
		err := r.policy().Compare(state)
		if errors.As(err, &d) && len(d.Wider) == 0 {
			r.say("the sandbox may reach less than the policy allows: %v", err)
			return nil
		}
		if err != nil {
			return fmt.Errorf("the sandbox may reach more than this run's policy allows, so nothing runs in it: %w", err)
		}
		return nil
	}
	return nil
}

func (r *run) located(command string, routes []api.Route) {
	if r.Located != nil {
		r.Located(At{Sandbox: r.name, Session: r.session, Command: command, Workdir: r.workdir, Routes: routes})
	}
}

// find is the sandbox by its name, or a new one.
func (r *run) find(ctx context.Context) (*api.Instance, error) {
	if r.Name == "" {
		return r.fresh(ctx)
	}
	found, err := r.Client.Get(ctx, r.Name, true)
	if errors.Is(err, fs.ErrNotExist) {
		r.name = r.Name
		return r.Client.Create(ctx, *r.request(r.name, nil))
	}
	if err != nil {
		return nil, err
	}
	r.name, r.reused = r.Name, true
	r.session = found.Session.ID
	// The policy of this run, before anything of it runs there.
	if _, err := r.Client.Update(ctx, r.name, api.UpdateRequest{NetworkPolicy: r.policy()}); err != nil {
		return nil, err
	}
	if found.Session.Status != api.Running {
		if _, err := r.Client.WaitRunning(ctx, found.Session.ID); err != nil {
			return nil, err
		}
	}
	s, err := r.Client.SetNetworkPolicy(ctx, found.Session.ID, r.policy())
	if err != nil {
		return nil, err
	}
	if s.ID == found.Session.ID && s.Cwd != "" {
		found.Session = *s
	}
	return found, nil
}

// fresh makes a sandbox for this run, from the task's snapshot when it has one.
func (r *run) fresh(ctx context.Context) (*api.Instance, error) {
	r.name = "launch-" + strings.ToLower(r.Session)
	if r.Task == "" || r.Tasks == nil {
		return r.Client.Create(ctx, *r.request(r.name, nil))
	}
	snapshot, err := r.Tasks.Snapshot(r.Task)
	if err != nil {
		return nil, err
	}
	if snapshot == "" {
		return r.Client.Create(ctx, *r.request(r.name, nil))
	}
	made, err := r.Client.Create(ctx, *r.request(r.name, &api.Source{Type: "snapshot", SnapshotID: snapshot}))
	if err == nil {
		r.reused = true
		return made, nil
	}
	var refused *api.Error
	if !errors.As(err, &refused) || ctx.Err() != nil || errors.Is(err, fs.ErrPermission) {
		return nil, err
	}
	r.say("the snapshot of task %s cannot be used, so this run begins anew: %v", r.Task, err)
	if err := r.Tasks.Drop(r.Task, snapshot); err != nil {
		return nil, err
	}
	r.name += "-2" // the first may exist, half made
	return r.Client.Create(ctx, *r.request(r.name, nil))
}

// release stops what this run made, and deletes it unless it is kept. What goes
// wrong is logged: the run itself is over. Its error is that of a snapshot,
// which somebody counts on.
func (r *run) release(ctx context.Context) error {
	if r.name == "" {
		return nil
	}
	if r.Keep && r.Name != "" && r.session != "" {
		r.say("sandbox %s is left running; end it with: launch sandbox stop %s", r.name, r.name)
		return nil
	}
	if r.session == "" && r.Name != "" {
		if found, err := r.Client.Get(ctx, r.name, false); err == nil { // made, though nobody heard of it
			r.session = found.Session.ID
		}
	}
	var err error
	if r.Task != "" && r.Tasks != nil && r.session != "" && !r.gone {
		err = r.snapshot(ctx)
	}
	if r.session != "" {
		if stopped, e := r.Client.Stop(ctx, r.session); e != nil && !api.IsGone(e) {
			r.log().Warn("the sandbox could not be stopped", "sandbox", r.name, "session", r.session, "error", e)
		} else if e == nil && stopped.Session.NetworkTransfer.Egress > 0 {
			r.log().Info("sandbox stopped", "sandbox", r.name, "egress_bytes", int64(stopped.Session.NetworkTransfer.Egress))
		}
	}
	if r.Name != "" {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(r.names())) {
		if e := r.Client.Delete(ctx, name, r.Task == ""); e != nil && !errors.Is(e, fs.ErrNotExist) {
			r.log().Warn("the sandbox could not be deleted", "sandbox", name, "error", e)
		}
	}
	return err
}

// names are the sandboxes that this run may have made.
func (r *run) names() map[string]bool {
	names := map[string]bool{r.name: true}
	if first, second := strings.CutSuffix(r.name, "-2"); second {
		names[first] = true
	}
	return names
}

// snapshot leaves a snapshot for the task's next run, and deletes the one that
// it takes the place of.
func (r *run) snapshot(ctx context.Context) error {
	made, _, err := r.Client.TakeSnapshot(ctx, r.session, nil)
	if err != nil {
		return fmt.Errorf("snapshot of task %s: the next run begins where this one began: %w", r.Task, err)
	}
	r.gone = true
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

// prolong keeps the session alive for as long as ctx lasts.
func (r *run) prolong(ctx context.Context) {
	told := false
	for {
		wait := time.NewTimer(max(time.Until(r.ends)-prolongTime, time.Second))
		select {
		case <-ctx.Done():
			wait.Stop()
			return
		case <-wait.C:
		}
		s, err := r.Client.Extend(ctx, r.session, prolongTime)
		switch {
		case err == nil:
			r.ends = r.ends.Add(prolongTime)
			if t := s.StartedAt.Time(); !t.IsZero() {
				r.ends = t.Add(s.Timeout.Duration())
			}
		case ctx.Err() != nil || api.IsGone(err):
			return
		default:
			if !told {
				told = true
				r.say("the sandbox may end at %s: it cannot be prolonged: %v", r.ends.Format(time.TimeOnly), err)
			}
			r.ends = r.ends.Add(time.Minute) // ask again then
		}
	}
}

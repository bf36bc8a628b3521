package vercel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"egressd/sandbox"
	"egressd/sandbox/vercel/api"
	"egressd/sandbox/vercel/api/firewall"
	"egressd/sandbox/vercel/network"
	"egressd/sandbox/vercel/stage"
)

// run is the state of one call of Run.
type run struct {
	*Backend
	spec    sandbox.Spec
	place   place
	res     *sandbox.Result
	signals *signals

	made    made
	session session
	used    Left   // by the session, once it was stopped
	program string // the command's id; "" until it was started, and on a terminal
	mark    string // the value of markVariable
	began   bool   // the program was started on a terminal
	disk    disk
}

// made is what a run has created at the service and may have to delete.
type made struct {
	name  string   // of the sandbox; "" until one may exist
	names []string // of every sandbox that this run may have created
	doubt bool     // it is unknown whether the last one was created
}

// session is the session that the program runs in.
type session struct {
	id      string
	region  string
	cwd     string    // its own directory
	workdir string    // of the workspace
	ends    time.Time // when the service ends it; Alive moves it
	running bool      // it ran before this run: another run may use it
	ready   bool      // it runs with this run's policy
	gone    bool      // it has ended
	loose   bool      // something may run in it that this run no longer watches
}

// disk is the workspace on the sandbox's disk.
type disk struct {
	reused  bool // it existed before this run, with its contents
	sudo    bool // files of ours on it belong to root
	tree    *stage.Tree
	sending *meter
	stamp   string // identifies what disk and workspace have in common, see common.go
}

// Times of a session. The service ends one whose launcher died; while a program
// runs its session is prolonged.
const (
	spareTime   = 10 * time.Minute // for sending and bringing back
	bootTime    = 90 * time.Second
	prolongTime = 5 * time.Minute

	prolongBefore = 3 * time.Minute
)

// Policy is the network policy in the service's words, with the secrets in it.
func (b *Backend) Policy() *firewall.Policy {
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

// request is the sandbox to be made for a workspace.
func (b *Backend) request(name, workspace string, source *api.Source) *api.CreateRequest {
	persistent := b.Name != ""
	r := &api.CreateRequest{
		Name: name, Ports: b.Ports, Source: cmp.Or(source, b.Source), Timeout: api.MillisOf(spareTime), Runtime: b.Runtime, Image: b.Image,
		Persistent: &persistent, NetworkPolicy: b.Policy(), Tags: b.tags(workspace), Own: !persistent,
	}
	if r.Ports == nil {
		r.Ports = []int{}
	}
	if persistent {
		r.KeepLastSnapshots, r.SnapshotExpiration = b.Snapshots.keep(), b.Snapshots.expiry()
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
	var found *api.Instance
	var err error
	if r.Name != "" {
		found, err = r.named(ctx)
	} else {
		found, err = r.fresh(ctx)
	}
	if err != nil {
		return err
	}
	r.session.region = cmp.Or(found.Session.Region, found.Sandbox.Region)
	r.session.id, r.session.cwd = found.Session.ID, cmp.Or(found.Session.Cwd, found.Sandbox.Cwd)
	if err := r.verify(found); err != nil {
		r.session.loose = true // a program there may reach too much
		return err
	}
	r.session.ready = true
	if err := r.fits(found); err != nil {
		return err
	}
	if !strings.HasPrefix(r.session.cwd, "/") {
		return fmt.Errorf("the sandbox does not say where its directory is (%q): name one with --vercel-workdir", r.session.cwd)
	}
	began := found.Session.StartedAt.Time()
	if !r.session.running || began.IsZero() || time.Since(began) < 0 {
		began = time.Now()
	}
	r.session.ends = began.Add(cmp.Or(found.Session.Timeout.Duration(), spareTime))
	if r.session.workdir, err = r.absolute(ctx, r.Backend.workdir(r.session.cwd)); err != nil {
		return err
	}
	r.located("", found.Routes)
	return nil
}

// verify compares the policy that the service reports with the one that was sent.
// An answer without a policy proves nothing.
func (r *run) verify(found *api.Instance) error {
	for _, state := range []*firewall.State{found.Session.NetworkPolicy, found.Sandbox.NetworkPolicy} {
		if state == nil {
			continue
		}
		var d *firewall.Difference
		err := r.Policy().Compare(state)
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

// located reports where the run is.
func (r *run) located(command string, routes []api.Route) {
	if r.Located != nil {
		r.Located(At{Sandbox: r.made.name, Session: r.session.id, Region: r.session.region, Command: command, Workdir: r.session.workdir, Routes: routes})
	}
}

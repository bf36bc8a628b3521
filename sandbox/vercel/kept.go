package vercel

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"egressd/sandbox/vercel/api"
	"egressd/sandbox/vercel/stage"
)

// Kept is a sandbox that outlives the runs in it.
type Kept struct {
	Client  *api.Client
	Name    string
	Workdir string // names that are not absolute are below it; "": the session's own directory
	Owner   Owner  // whose it has to be: else all but PortURL and Snapshots is a *ForeignError
	Known   bool   // it is Owner's also without a mark: an earlier launch wrote none
}

// mine finds the sandbox. One that is somebody else's by now is a *ForeignError.
func (k *Kept) mine(ctx context.Context) (*api.Instance, error) {
	found, err := k.Client.Get(ctx, k.Name, false)
	if err != nil {
		return nil, err
	}
	if foreign := k.Owner.foreign(found, ""); foreign != nil && (!k.Known || foreign.Mark != Mark{}) {
		return nil, foreign
	}
	return found, nil
}

// session is the one that runs, or a new one of the last snapshot.
func (k *Kept) session(ctx context.Context) (*api.Instance, error) {
	if _, err := k.mine(ctx); err != nil {
		return nil, err
	}
	found, err := k.Client.Get(ctx, k.Name, true)
	if err != nil {
		return nil, err
	}
	if found.Session.Status != api.Running {
		if _, err := k.Client.WaitRunning(ctx, found.Session.ID); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// Stop ends the session, if there is one, and with it every program in it.
func (k *Kept) Stop(ctx context.Context) error {
	found, err := k.mine(ctx)
	if errors.Is(err, fs.ErrNotExist) || err == nil && found.Session.Status.Final() {
		return nil
	}
	if err != nil {
		return err
	}
	if _, err = k.Client.Stop(ctx, found.Session.ID); api.IsGone(err) {
		err = nil
	}
	return err
}

// Delete removes the sandbox and the snapshots that only it needs. One that is
// already gone is not an error.
func (k *Kept) Delete(ctx context.Context) error {
	if _, err := k.mine(ctx); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	if err := k.Client.Delete(ctx, k.Name, true); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Snapshot saves the disk and returns the snapshot's id. It ends the session.
// expiry is after the last use; 0: the sandbox's, negative: never.
func (k *Kept) Snapshot(ctx context.Context, expiry time.Duration) (string, error) {
	found, err := k.session(ctx)
	if err != nil {
		return "", err
	}
	var expires *api.Millis
	if expiry != 0 {
		expires = Snapshots{Expiry: expiry}.expiry()
	}
	made, _, err := k.Client.TakeSnapshot(ctx, found.Session.ID, expires)
	if err != nil {
		return "", err
	}
	if made.ID == "" {
		return "", errors.New("vercel_snapshot_id_missing")
	}
	return made.ID, nil
}

// maxSnapshots is how many the list of snapshots has, the newest first.
const maxSnapshots = 50

// Snapshots lists the sandbox's snapshots that can be restored.
func (k *Kept) Snapshots(ctx context.Context) ([]api.Snapshot, error) {
	var all []api.Snapshot
	for s, err := range k.Client.Snapshots(ctx, api.ListOptions{Name: k.Name}) {
		if err != nil {
			return all, err
		}
		if s.Status == "created" {
			all = append(all, s)
		}
		if len(all) == maxSnapshots {
			break
		}
	}
	return all, nil
}

// DropSnapshot removes one of the sandbox's snapshots, but not the one that its
// next session begins with.
func (k *Kept) DropSnapshot(ctx context.Context, id string) error {
	found, err := k.mine(ctx)
	if err != nil {
		return err
	}
	if found.Sandbox.CurrentSnapshotID == id {
		return fmt.Errorf("sandbox %s goes on from snapshot %s: restore another one first, or remove the sandbox", k.Name, id)
	}
	for s, err := range k.Client.Snapshots(ctx, api.ListOptions{Name: k.Name}) {
		if err != nil {
			return err
		}
		if s.ID == id && s.Status == "created" {
			_, err := k.Client.DeleteSnapshot(ctx, id)
			return err
		}
	}
	return fmt.Errorf("sandbox %s has no snapshot %s: %w", k.Name, id, fs.ErrNotExist)
}

// Change gives the sandbox those resources, ports, tags and bounds of snapshots
// that o names; what it does not name is as it was. A session that runs gets all but
// the resources, which are the next one's.
func (k *Kept) Change(ctx context.Context, o Options) error {
	found, err := k.mine(ctx)
	if err != nil {
		return err
	}
	var change api.UpdateRequest
	if o.VCPUs > 0 {
		change.Resources = &api.Resources{VCPUs: o.VCPUs}
	}
	if len(o.Ports) > 0 {
		change.Ports = &o.Ports
	}
	if len(o.Tags) > 0 {
		change.Tags = maps.Clone(o.Tags)
		if mark, ok := found.Sandbox.Tags[ownerTag]; ok {
			change.Tags[ownerTag] = mark
		}
	}
	if o.Snapshots.Count > 0 {
		change.KeepLastSnapshots = o.Snapshots.keep()
	}
	if o.Snapshots.Expiry != 0 {
		change.SnapshotExpiration = o.Snapshots.expiry()
	}
	whole := api.CreateRequest{Name: k.Name, Ports: o.Ports, Resources: change.Resources, Tags: change.Tags}
	if err := whole.Validate(); err != nil {
		return err
	}
	_, err = k.Client.Update(ctx, k.Name, change)
	return err
}

// Restore makes the next session begin with a snapshot. A running session is
// stopped; its changes stay in a snapshot of its own.
func (k *Kept) Restore(ctx context.Context, snapshot string) error {
	if _, err := k.Client.Snapshot(ctx, snapshot); err != nil {
		return err
	}
	if err := k.Stop(ctx); err != nil {
		return err
	}
	_, err := k.Client.Update(ctx, k.Name, api.UpdateRequest{CurrentSnapshotID: snapshot})
	return err
}

// PortURL returns the URL of a published port.
func (k *Kept) PortURL(ctx context.Context, port int) (string, error) {
	found, err := k.Client.Get(ctx, k.Name, false)
	if err != nil {
		return "", err
	}
	at, ok := api.PortURL(found.Routes, port)
	if !ok {
		return "", fmt.Errorf("sandbox_port_url_not_supported: port %d is not published: make the sandbox with --port %d", port, port)
	}
	return at, nil
}

// at makes a name of the sandbox absolute; one with "~" still is none.
func (k *Kept) at(name, cwd string) string {
	if path.IsAbs(name) || atHome(name) {
		return path.Clean(name)
	}
	base := k.Workdir
	if base == "" {
		base = cwd
	}
	return path.Join(base, name)
}

// Push copies a file or directory of this machine to name in the sandbox.
func (k *Kept) Push(ctx context.Context, local, name string) error {
	found, err := k.session(ctx)
	if err != nil {
		return err
	}
	to := k.at(name, found.Session.Cwd)
	info, err := os.Stat(local)
	if err != nil {
		return err
	}
	r := &run{Backend: &Backend{Client: k.Client, Session: rand.Text()[:12], Options: Options{Name: k.Name}}, session: session{id: found.Session.ID}}
	if to, err = r.absolute(ctx, to); err != nil {
		return err
	}
	r.session.workdir = to
	if !info.IsDir() {
		if strings.HasSuffix(name, "/") {
			to = path.Join(to, filepath.Base(local))
		}
		one := api.File{Path: to, Mode: sentMode(info.Mode()), Size: info.Size(), Open: func() (io.ReadCloser, error) { return os.Open(local) }}
		return k.Client.WriteFiles(ctx, r.session.id, func(yield func(api.File) bool) { yield(one) }, nil)
	}
	tree, err := stage.Scan(ctx, stage.Config{Dir: local, All: true, Skip: []string{}})
	if err != nil {
		return err
	}
	defer tree.Close()
	r.disk.tree = tree
	defer r.tidy(context.WithoutCancel(ctx))
	all := tree.Entries()
	if _, err := r.ours(ctx, api.CommandRequest{Command: "mkdir", Args: []string{"-p", "--", to}}); err != nil {
		return err
	}
	if err := k.Client.WriteFiles(ctx, r.session.id, r.files(all), nil); err != nil {
		return err
	}
	return r.sendOthers(ctx, all)
}

// Pull copies a file of the sandbox to local, or a directory into local, which
// is made. A local file that is there already is an error, as is one of the
// directory's.
func (k *Kept) Pull(ctx context.Context, name, local string) error {
	found, err := k.session(ctx)
	if err != nil {
		return err
	}
	r := &run{Backend: &Backend{Client: k.Client, Session: rand.Text()[:12], Options: Options{Name: k.Name}}, session: session{id: found.Session.ID}}
	if r.session.workdir, err = r.absolute(ctx, k.at(name, found.Session.Cwd)); err != nil {
		return err
	}
	isDir, err := r.isDir(ctx)
	if err != nil {
		return err
	}
	if !isDir {
		return r.pullFile(ctx, local)
	}
	if err := os.MkdirAll(local, 0o755); err != nil {
		return err
	}
	tree, err := stage.Scan(ctx, stage.Config{Dir: local, Receive: true, Skip: []string{}})
	if err != nil {
		return err
	}
	defer tree.Close()
	r.disk.tree = tree
	defer r.tidy(context.WithoutCancel(ctx))
	archive, err := r.pack(ctx)
	if err != nil {
		return err
	}
	report, err := r.mirror(ctx, archive, "")
	for _, p := range append(report.Conflicts, report.Refused...) {
		err = errors.Join(err, fmt.Errorf("%s: %s", p.Path, p.Why))
	}
	if len(report.Conflicts) > 0 {
		err = fmt.Errorf("what differs here is left as it is; all else was copied. Remove it, or copy to a directory that is not there yet:\n%w", err)
	}
	return err
}

// isDir reports what the path is; one that is not there is an error.
func (r *run) isDir(ctx context.Context) (bool, error) {
	words, err := r.ours(ctx, api.CommandRequest{
		Command: "sh", Args: []string{"-c", `if [ -d "$0" ]; then echo directory; elif [ -f "$0" ]; then echo file; elif [ -e "$0" ]; then echo other; fi`, r.session.workdir},
	})
	switch kind := strings.TrimSpace(words); {
	case err != nil:
		return false, err
	case kind == "":
		return false, fmt.Errorf("%s: %w", r.session.workdir, fs.ErrNotExist)
	case kind != "directory" && kind != "file":
		return false, fmt.Errorf("%s is neither a file nor a directory", r.session.workdir)
	default:
		return kind == "directory", nil
	}
}

func (r *run) pullFile(ctx context.Context, local string) error {
	if info, err := os.Stat(local); err == nil && info.IsDir() {
		local = filepath.Join(local, path.Base(r.session.workdir))
	}
	f, err := os.OpenFile(local, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	err = errors.Join(r.download(ctx, r.session.workdir, f, maxArchive), f.Close())
	if err != nil {
		_ = os.Remove(local)
	}
	return err
}

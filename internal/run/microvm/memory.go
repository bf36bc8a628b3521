package microvm

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strconv"

	"egressd/internal/cli"
	"egressd/internal/run/records"
	"egressd/sandbox/vercel"
	"egressd/sandbox/vercel/api"
)

// Tasks keeps the snapshots of tasks in launch's records.
func Tasks(store *records.Store) vercel.Tasks { return tasks{store} }

type tasks struct{ store *records.Store }

// Snapshot implements [vercel.Tasks].
func (t tasks) Snapshot(task string) (string, error) {
	found, err := t.store.Task(task)
	if errors.Is(err, records.ErrNotFound) {
		return "", nil
	}
	if err == nil && found.Tier != Tier {
		err = fmt.Errorf("task %s is of tier %s", task, found.Tier)
	}
	return found.Snapshot, err
}

// Set implements [vercel.Tasks].
func (t tasks) Set(task, id string) (string, error) { return t.store.SetTask(task, Tier, id) }

// Drop implements [vercel.Tasks].
func (t tasks) Drop(task, id string) error { return t.store.DropTask(task, id) }

// Owner is who runs launch, for the mark that sandboxes at the service get.
func Owner(p *cli.Program, store *records.Store) (vercel.Owner, error) {
	id, err := store.Owner()
	if err != nil {
		return vercel.Owner{}, err
	}
	user := cmp.Or(p.Getenv("USER"), p.Getenv("LOGNAME"), strconv.Itoa(os.Getuid()))
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return vercel.Owner{ID: id, Who: user + "@" + host}, nil
}

// Synced keeps in launch's records what the disk of o and the workspace have in
// common. client says whose account the disk is in.
func (o *Options) Synced(store *records.Store, client *api.Client) vercel.Synced {
	return synced{store, records.Place{Sandbox: o.Name, Task: o.Task, Where: client.TeamID + "/" + client.ProjectID}}
}

type synced struct {
	store *records.Store
	place records.Place
}

// Load implements [vercel.Synced].
func (y synced) Load(workspace string) (string, map[string]string, error) {
	return y.store.Synced(y.place, workspace)
}

// Save implements [vercel.Synced].
func (y synced) Save(workspace, stamp string, marks map[string]string) error {
	return y.store.SetSynced(y.place, workspace, stamp, marks)
}

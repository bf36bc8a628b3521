package sandboxes

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/term"

	"egressd/internal/cli"
	"egressd/internal/run/microvm"
	"egressd/internal/run/records"
	"egressd/sandbox/vercel"
	"egressd/sandbox/vercel/api"
)

// remoteSandbox is a sandbox of the project, as launch sandbox ls --remote shows
// it.
type remoteSandbox struct {
	Name   string     `json:"name"`
	Status api.Status `json:"status"`
	Owner  string     `json:"owner"` // "you", who made it, or "": launch did not
	Mine   bool       `json:"mine"`
	Kept   bool       `json:"kept"`   // its disk outlives its runs
	Orphan bool       `json:"orphan"` // it is this user's, and nothing here knows it
	VCPUs  int        `json:"vcpus"`
	Made   time.Time  `json:"createdAt"`
}

// Running reports whether it may have a machine now.
func (r *remoteSandbox) Running() bool { return !r.Status.Final() }

// maxRemote bounds what is listed.
const maxRemote = 2000

// project is the service with the credentials of the environment and of this
// directory.
func (s *Set) project() (*api.Client, vercel.Owner, error) {
	var o microvm.Options
	client, err := o.Client(s.Program, slog.New(slog.DiscardHandler), o.Vouched(s.Records, nil))
	if err != nil {
		return nil, vercel.Owner{}, err
	}
	owner, err := microvm.Owner(s.Program, s.store)
	return client, owner, err
}

// remote lists the project's sandboxes, the newest first.
func (s *Set) remotes(ctx context.Context, client *api.Client, owner vercel.Owner) ([]remoteSandbox, error) {
	var all []remoteSandbox
	for b, err := range client.List(ctx, api.ListOptions{Limit: 50}) {
		if err != nil {
			return all, err
		}
		mark := vercel.MarkOf(b.Tags)
		r := remoteSandbox{
			Name: b.Name, Status: b.Status, Owner: mark.Who, Mine: mark.Owner == owner.ID && owner.ID != "",
			Kept: b.Persistent, VCPUs: int(b.VCPUs), Made: b.CreatedAt.Time().UTC(),
		}
		if r.Mine {
			r.Owner = "you"
			orphan, err := s.orphan(b.Name, b.Persistent, client.ProjectID)
			if err != nil {
				return all, err
			}
			r.Orphan = orphan
		}
		if all = append(all, r); len(all) == maxRemote {
			break
		}
	}
	return all, nil
}

// orphan reports whether a sandbox of this user is known to no record of this
// project. One that was made for one run has none.
func (s *Set) orphan(name string, kept bool, project string) (bool, error) {
	if !kept || records.ValidName(name) != "" {
		return true, nil
	}
	b, err := s.store.Sandbox(name)
	if errors.Is(err, records.ErrNotFound) {
		return true, nil
	}
	return err == nil && (b.Tier != microvm.Tier || b.Remote.Project != "" && b.Remote.Project != project), err
}

// ListRemote prints what is in the project, whosever it is.
func (s *Set) ListRemote(asJSON bool) error {
	client, owner, err := s.project()
	if err != nil {
		return err
	}
	ctx, stop := bounded()
	defer stop()
	all, err := s.remotes(ctx, client, owner)
	if asJSON {
		return errors.Join(err, printJSON(s.Stdout, all))
	}
	if len(all) == 0 && err == nil {
		s.Say("launch: project %s has no sandboxes\n", cli.Safe(client.ProjectID))
	}
	return errors.Join(err, printRemotes(s.Stdout, all))
}

func printRemotes(to io.Writer, all []remoteSandbox) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	if len(all) > 0 {
		fmt.Fprintln(w, "NAME\tSTATUS\tOWNER\tKEPT\tVCPUS\tMADE\tNOTE")
	}
	for _, r := range all {
		owner, kept, note := r.Owner, "no", ""
		switch {
		case r.Owner == "":
			owner, note = "-", "launch did not make it"
		case r.Orphan && r.Running() && !r.Kept:
			note = "a run's own: it runs, or ends by itself"
		case r.Orphan:
			note = "orphan: launch sandbox prune"
		}
		if r.Kept {
			kept = "yes"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%s\t%s\n", cli.Safe(r.Name), cli.Safe(string(r.Status)), cli.Safe(owner), kept, r.VCPUs, r.Made.Local().Format(timeFormat), note)
	}
	return w.Flush()
}

// Prune deletes what this user's runs have left in the project and no record here
// knows. With running also what runs; yes does not ask.
//
// Threat: somebody else's sandbox, or one that a run uses, is deleted -> only what
// carries this user's mark, looked at again right before; what runs only on
// request. Left over: with running, a run that is going on in another terminal.
func (s *Set) Prune(running, yes bool) error {
	client, owner, err := s.project()
	if err != nil {
		return err
	}
	ctx, stop := bounded()
	defer stop()
	all, err := s.remotes(ctx, client, owner)
	if err != nil {
		return err
	}
	var doomed []remoteSandbox
	left := 0
	for _, r := range all {
		switch {
		case !r.Orphan:
		case r.Running() && !running:
			left++
		default:
			doomed = append(doomed, r)
		}
	}
	if left > 0 {
		s.Say("launch: %d of yours are running, and stay: --running ends them, too\n", left)
	}
	if len(doomed) == 0 {
		s.Say("launch: there is nothing to delete\n")
		return nil
	}
	if err := printRemotes(s.Stdout, doomed); err != nil {
		return err
	}
	if !yes {
		if err := s.agree(fmt.Sprintf("Delete these %d sandboxes, with their disks and snapshots?", len(doomed))); err != nil {
			return err
		}
	}
	var errs []error
	for _, r := range doomed {
		k := &vercel.Kept{Client: client, Name: r.Name, Owner: owner}
		if err := k.Delete(ctx); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("%s: %w", cli.Safe(r.Name), err))
			continue
		}
		s.Say("launch: deleted %s\n", cli.Safe(r.Name))
	}
	return errors.Join(errs...)
}

// agree asks a person. Without a terminal, and for any answer but yes, it is an
// error.
func (s *Set) agree(question string) error {
	if s.Stdin == nil || !term.IsTerminal(int(s.Stdin.Fd())) {
		return errors.New("nobody can be asked here: --yes says yes")
	}
	s.Say("%s [y/N] ", question)
	answer, err := bufio.NewReader(s.Stdin).ReadString('\n')
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return errors.New("nothing was deleted")
}

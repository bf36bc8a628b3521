package sandboxes

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"egressd/internal/cli"
	"egressd/internal/run"
	"egressd/internal/run/microvm"
	"egressd/internal/run/records"
	"egressd/sandbox"
	"egressd/sandbox/vercel"
)

// hosted finds a sandbox at the service. what is what a sandbox of another tier
// lacks, for the *sandbox.CapabilityError.
func (s *Set) hosted(name, what string) (*vercel.Kept, error) {
	b, err := s.sandbox(name)
	if err != nil {
		return nil, err
	}
	if b.Tier != microvm.Tier {
		return nil, &sandbox.CapabilityError{
			Isolation: b.Tier, What: "a sandbox of this tier has no " + what + ": it is the workspace itself, and what runs in it",
			Fix: "make the sandbox with --tier vercel",
		}
	}
	return s.remote(b)
}

// remote is a hosted sandbox by its record.
func (s *Set) remote(b records.Sandbox) (*vercel.Kept, error) {
	o, err := flagsOf(b)
	if err != nil {
		return nil, err
	}
	o.MicroVM.Workspace = b.Workspace
	client, err := o.MicroVM.Client(s.Program, slog.New(slog.DiscardHandler), o.MicroVM.Vouched(s.Records, nil))
	if err != nil {
		return nil, err
	}
	owner, err := microvm.Owner(s.Program, s.store)
	if err != nil {
		return nil, err
	}
	return &vercel.Kept{Client: client, Name: b.Name, Workdir: b.Remote.Workdir, Owner: owner, Known: b.Remote.Sandbox != ""}, nil
}

// flagsOf reads the flags that a sandbox was made with, and more of them.
func flagsOf(b records.Sandbox, more ...string) (*run.Options, error) {
	var o run.Options
	if err := o.Parse(append(b.Flags[:len(b.Flags):len(b.Flags)], more...)); err != nil {
		return nil, fmt.Errorf("the flags of sandbox %s: %w", b.Name, err)
	}
	if b.Remote.Project != "" {
		o.MicroVM.Project, o.MicroVM.Team = b.Remote.Project, b.Remote.Team
	}
	return &o, nil
}

// hostedTime bounds one command about a hosted sandbox that moves no files.
const hostedTime = 5 * time.Minute

// bounded is a context for such a command.
func bounded() (context.Context, context.CancelFunc) {
	ctx, stop := interrupted()
	ctx, cancel := context.WithTimeout(ctx, hostedTime)
	return ctx, func() { cancel(); stop() }
}

// Copy copies files between NAME:PATH and a path of this machine.
func (s *Set) Copy(from, to string) error {
	name, remote, pull := strings.Cut(from, ":")
	pull = pull && records.ValidName(name) == ""
	other, there, push := strings.Cut(to, ":")
	push = push && records.ValidName(other) == ""
	if pull == push {
		return errors.New("one of the two is NAME:PATH, the other a path of this machine (write ./ before one with a colon)")
	}
	if push {
		name = other
	}
	k, err := s.hosted(name, "files of its own")
	if err != nil {
		return err
	}
	ctx, stop := interrupted()
	defer stop()
	if pull {
		return k.Pull(ctx, remote, to)
	}
	return k.Push(ctx, from, there)
}

// Snapshot keeps the disk of a hosted sandbox, prints the snapshot's ID and stops
// the sandbox. expiry is as microvm.ParseExpiry reads it; "" is the sandbox's.
func (s *Set) Snapshot(name, expiry string) error {
	var after time.Duration
	if expiry != "" {
		var err error
		if after, err = microvm.ParseExpiry(expiry); err != nil {
			return fmt.Errorf("--expires: %w", err)
		}
	}
	k, err := s.hosted(name, "snapshots")
	if err != nil {
		return err
	}
	ctx, stop := bounded()
	defer stop()
	id, err := k.Snapshot(ctx, after)
	if err != nil {
		return err
	}
	s.Print(id + "\n")
	return s.stopped(name)
}

// DropSnapshot removes a snapshot of a hosted sandbox.
func (s *Set) DropSnapshot(name, id string) error {
	k, err := s.hosted(name, "snapshots")
	if err != nil {
		return err
	}
	ctx, stop := bounded()
	defer stop()
	return k.DropSnapshot(ctx, id)
}

// Snapshots prints the snapshots of a hosted sandbox, the newest first.
func (s *Set) Snapshots(name string) error {
	k, err := s.hosted(name, "snapshots")
	if err != nil {
		return err
	}
	ctx, stop := bounded()
	defer stop()
	all, err := k.Snapshots(ctx)
	w := tabwriter.NewWriter(s.Stdout, 0, 0, 2, ' ', 0)
	if len(all) > 0 {
		fmt.Fprintln(w, "SNAPSHOT\tMADE\tHOW\tSIZE\tEXPIRES")
	} else if err == nil {
		s.Say("launch: sandbox %s has no snapshots\n", name)
	}
	for _, one := range all {
		expires := "never"
		if one.ExpiresAt != 0 {
			expires = one.ExpiresAt.Time().Local().Format(timeFormat)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%d MB\t%s\n", cli.Safe(one.ID), one.CreatedAt.Time().Local().Format(timeFormat), cli.Safe(one.Method), int64(one.SizeBytes)/1e6, expires)
	}
	return errors.Join(err, w.Flush())
}

// Change gives a hosted sandbox other resources, ports, tags or bounds, for its next
// runs as well: flags are launch's, each --name=value, and take the place of all of
// that name.
func (s *Set) Change(name string, flags []string) error {
	if len(flags) == 0 {
		return errors.New("say what to change: launch sandbox set --vcpus 4 " + name)
	}
	k, err := s.hosted(name, "resources of its own")
	if err != nil {
		return err
	}
	b, err := s.sandbox(name)
	if err != nil {
		return err
	}
	if err := s.trusted(b); err != nil {
		return err
	}
	all := slices.DeleteFunc(slices.Clone(b.Flags), func(old string) bool {
		return slices.ContainsFunc(flags, func(f string) bool { return sameFlag(old, f) })
	})
	all = append(all, flags...)
	var own run.Options
	if err := own.Parse(flags); err != nil {
		return err
	}
	b.Flags = all
	whole, err := flagsOf(b)
	if err == nil {
		err = whole.MicroVM.Validate(name)
	}
	if err != nil {
		return err
	}
	ctx, stop := bounded()
	defer stop()
	if err := k.Change(ctx, own.MicroVM.Options); err != nil {
		return err
	}
	return s.store.Renew(name, func(b *records.Sandbox) { b.Flags = all })
}

// sameFlag reports whether a and b, each --name=value, are the same flag.
func sameFlag(a, b string) bool {
	a, _, _ = strings.Cut(a, "=")
	b, _, _ = strings.Cut(b, "=")
	return a == b
}

// Restore stops a hosted sandbox. Its next session begins with a snapshot.
func (s *Set) Restore(name, snapshot string) error {
	k, err := s.hosted(name, "snapshots")
	if err != nil {
		return err
	}
	ctx, stop := bounded()
	defer stop()
	if err := k.Restore(ctx, snapshot); err != nil {
		return err
	}
	return s.stopped(name)
}

// Port prints the address at which a published port is reached.
func (s *Set) Port(name, port string) error {
	k, err := s.hosted(name, "published ports; see launch --publish")
	if err != nil {
		return err
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return fmt.Errorf("%q is not a port", port)
	}
	ctx, stop := bounded()
	defer stop()
	at, err := k.PortURL(ctx, int(n))
	if err == nil {
		s.Print(at + "\n")
	}
	return err
}

func (s *Set) stopHosted(b records.Sandbox) error {
	k, err := s.remote(b)
	if err != nil {
		return err
	}
	ctx, stop := bounded()
	defer stop()
	if err := s.dismiss(ctx, b.Name); err != nil {
		return err
	}
	if err := k.Stop(ctx); err != nil {
		return err
	}
	return s.stopped(b.Name)
}

// stopped notes that a hosted sandbox was stopped, and with it what ran there.
func (s *Set) stopped(name string) error {
	return errors.Join(s.store.MarkAllLost(name, records.SandboxStopped),
		s.store.Update(name, func(b *records.Sandbox) { b.Status = records.Stopped }))
}

func (s *Set) deleteHosted(b records.Sandbox) error {
	all, err := s.store.Processes(b.Name)
	for _, p := range all {
		if !p.Over() {
			return fmt.Errorf("process %s is running: stop the sandbox first, or use -f", p.ID)
		}
	}
	if err != nil {
		return err
	}
	k, err := s.remote(b)
	if err != nil {
		return err
	}
	ctx, stop := bounded()
	defer stop()
	err = k.Delete(ctx)
	if foreign := (*vercel.ForeignError)(nil); errors.As(err, &foreign) {
		s.Say("launch: sandbox %s at the service is not yours and stays; it is forgotten here\n", b.Name)
		return nil
	}
	return err
}

// Package vercel runs a program in a Vercel Sandbox, a hosted microVM. It copies
// the workspace there, runs the program, brings the changes back and cleans up:
//
//	net, err := network.Translate(policy, secret)
//	...
//	tier := &vercel.Backend{Client: client, Network: net, Session: id}
//	result, err := tier.Run(ctx, sandbox.Spec{Argv: []string{"make", "test"}})
//
// Vercel enforces the policy: what it denies there is not reported here. A gate
// inside, which Backend.Gate asks for, reports what programs ask it. [Kept]
// addresses a sandbox that outlives its runs.
package vercel

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"egressd/event"
	"egressd/sandbox"
	"egressd/sandbox/vercel/api"
	"egressd/sandbox/vercel/inside"
	"egressd/sandbox/vercel/network"
)

// Exit codes, the same in every tier.
const (
	exitLauncher = 125
	exitNotFound = 127
	exitTimeout  = 124
	exitSignal   = 128
)

// Backend is the tier. Set the fields before Run. Runs may be concurrent.
type Backend struct {
	Client  *api.Client
	Network *network.Network // nil denies everything
	Events  event.Sink       // receives file.changed for what comes back; nil drops it
	Log     *slog.Logger     // what could not be cleaned up; nil discards
	Session string           // of every event
	Gate    *inside.Gate     // runs beside the program; nil: none does

	Options

	// Known reports what earlier runs left in a workspace, see stage.Config. Nil:
	// nothing.
	Known func(workspace string) map[string][sha256.Size]byte
	// Tasks remembers the snapshot of Options.Task between runs.
	Tasks Tasks
	// Synced remembers what a sandbox that stays has in common with the workspace,
	// so that only the difference is sent. Nil: everything is
	// sent each time, and what is gone here stays there.
	Synced Synced
	// Shared reports whether another run uses the sandbox of that name; it is
	// then not stopped. Nil: none does.
	Shared func() bool
	// Located is called with where the program runs as soon as that is known. May
	// be nil.
	Located func(At)
	// Left is called at the end of a run for which a machine was made or found. May
	// be nil.
	Left func(Left)
	// Changed is called with what came back. May be nil.
	Changed func(Changes)
	// Progress is called with the progress of a stage ("sending", "bringing
	// back"): files and bytes so far, and of how many files, 0 if unknown. The
	// stage "" is the program itself, which owns the terminal then. May be nil.
	Progress func(stage string, files int, bytes int64, of int)
}

// Options are the user's choices.
type Options struct {
	Name string // of a sandbox that is kept; "" is one for this run only
	Keep bool   // leave it running
	Task string // go on from the snapshot of this task, and leave one; "" none

	Runtime, Image string // at most one; "" is the service's
	VCPUs          int    // 0 is the service's
	Ports          []int  // published to everybody
	Tags           map[string]string
	Workdir        string      // absolute in the VM; "": workspace below the session's own directory
	Source         *api.Source // what the disk begins with; nil: the image

	All bool // send also what .gitignore leaves out

	Snapshots Snapshots // of a sandbox with a name

	Owner Owner // who runs
	Adopt bool  // with Name: use a sandbox of another owner or workspace, which becomes this one's
}

// Snapshots bounds what the service keeps of a sandbox with a name: each stop
// leaves a snapshot of its disk.
type Snapshots struct {
	Count  int           // the newest, 1 to 10; 0: 3
	Expiry time.Duration // after their last use, a day at least; 0: a week, negative: never
}

// Implementation constants.
const (
	snapshotCount  = 3
	snapshotExpiry = 7 * 24 * time.Hour
)

func (s Snapshots) keep() *api.KeepSnapshots {
	return &api.KeepSnapshots{Count: cmp.Or(s.Count, snapshotCount)}
}

func (s Snapshots) expiry() *api.Millis {
	ms := api.MillisOf(max(cmp.Or(s.Expiry, snapshotExpiry), 0))
	return &ms
}

// At is where a program runs.
type At struct {
	Sandbox string // name
	Session string
	Region  string
	Command string // "" until it was started
	Workdir string
	Routes  []api.Route
}

// Left is how a run left its sandbox, and what the machine used.
type Left struct {
	Until time.Time // a sandbox with a name runs until then; zero: it was stopped
	Ran   bool      // the program was started

	// What the service counted for the session, if it was stopped and said so.
	CPU, Time time.Duration // of processors, and on the clock
	In, Out   int64         // bytes, of network
	VCPUs     int
}

// Tasks remembers snapshots; internal/run/records does.
type Tasks interface {
	Snapshot(task string) (id string, err error) // "" when there is none
	Set(task, id string) (old string, err error)
	Drop(task, id string) error // unless it is another one by now
}

// Synced remembers what a sandbox's disk and a workspace have in common: by path,
// what stage.Tree calls marks. Stamp tells states of the disk apart. Load returns
// nothing for another workspace.
type Synced interface {
	Load(workspace string) (stamp string, marks map[string]string, err error)
	Save(workspace, stamp string, marks map[string]string) error
}

// Isolation reports "vercel-sandbox", or with a gate inside that one's word.
func (b *Backend) Isolation() string {
	if b.Gate != nil {
		return inside.Isolation
	}
	return network.Isolation
}

// Supports reports a *sandbox.CapabilityError for what could not run, before any
// request is sent.
func (b *Backend) Supports(spec sandbox.Spec) error {
	if b.Client == nil {
		return unable("there is no client: no credentials", "set VERCEL_TOKEN, VERCEL_TEAM_ID and VERCEL_PROJECT_ID")
	}
	if _, err := commandLine(spec); err != nil {
		return unable(err.Error(), "")
	}
	if err := b.checkWorkdir(); err != nil {
		return err
	}
	if _, err := b.place(spec.Dir); err != nil {
		return err
	}
	create := b.request("x", "", nil)
	if err := create.Validate(); err != nil {
		return unable(err.Error(), "")
	}
	if b.Tags[ownerTag] != "" {
		return unable("the tag "+ownerTag+" says whose a sandbox is, and launch writes it", "take another tag")
	}
	if b.Task != "" && (b.Source != nil || b.Name != "") {
		return unable("--task goes on from a snapshot of its own", "leave out --source and --name")
	}
	return nil
}

func unable(what, fix string) error {
	return &sandbox.CapabilityError{Isolation: network.Isolation, What: what, Fix: fix}
}

// Run runs spec. The first signal to this process (INT, TERM, HUP) goes to the
// program; the second, or the end of ctx, ends the run. After one INT what the
// program changed is brought back; after any other signal there may be no time
// for that. In every case what was made for this run is stopped and deleted.
func (b *Backend) Run(ctx context.Context, spec sandbox.Spec) (sandbox.Result, error) {
	res := sandbox.Result{ExitCode: exitLauncher, Started: time.Now()}
	err := b.Supports(spec)
	if err == nil {
		err = b.run(ctx, spec, &res)
	}
	res.Ended = time.Now()
	return res, err
}

func (b *Backend) run(ctx context.Context, spec sandbox.Spec, res *sandbox.Result) (err error) {
	place, err := b.place(spec.Dir)
	if err != nil {
		return err
	}
	sig := catch()
	defer sig.stop()
	if spec.Forwarding != nil {
		spec.Forwarding()
	}
	r := &run{Backend: b, spec: spec, place: place, res: res, signals: sig, mark: rand.Text()}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// Until the program runs, a signal ends everything.
	early := sig.cancelling(cancel)
	defer early()
	defer func() {
		err = errors.Join(err, r.release(ctx))
		if n := sig.caught(); n != 0 {
			res.ExitCode = exitSignal + int(n)
			if errors.Is(err, context.Canceled) {
				err = fmt.Errorf("interrupted: %w", err)
			}
		}
	}()
	whole, err := r.readFile(ctx)
	if err != nil {
		return fmt.Errorf("standard input: %w", err)
	}
	defer whole.close()
	if err := r.acquire(ctx); err != nil {
		return err
	}
	defer r.closeTree()
	alive := Alive(ctx, r.Client, r.session.id, r.session.ends, r.say)
	defer func() { r.session.ends = alive() }()
	if err := r.send(ctx); err != nil {
		return fmt.Errorf("send the workspace: %w", err)
	}
	if err := r.markDirty(); err != nil {
		return err
	}
	gate, err := r.startGate(ctx)
	if err != nil {
		return fmt.Errorf("egressd in the sandbox: %w", err)
	}
	defer gate.stop()
	in, err := r.startInput(ctx, whole)
	if err != nil {
		return fmt.Errorf("standard input: %w", err)
	}
	defer in.stop()
	early()
	r.progress("", 0, 0, 0)
	attended, err := r.onTerminal(ctx)
	if !attended {
		err = r.command(ctx, in)
	}
	gate.stop()
	if r.program == "" && !r.began || r.session.gone {
		return err
	}
	if sig.hurry() || ctx.Err() != nil {
		r.say("what changed in the sandbox was not brought back: the run was interrupted")
		return err
	}
	late := sig.cancelling(cancel)
	defer late()
	if e := r.bringBack(ctx); e != nil {
		err = errors.Join(err, fmt.Errorf("bring the changes back: %w", e))
	}
	return err
}

func (r *run) say(format string, args ...any) {
	if r.spec.Notes != nil {
		r.spec.Notes(fmt.Sprintf(format, args...))
	}
}

func (b *Backend) log() *slog.Logger {
	if b.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return b.Log
}

// write writes to f; a nil f drops the data.
func write(f *os.File, data []byte) error {
	if f == nil {
		return nil
	}
	_, err := f.Write(data)
	return err
}

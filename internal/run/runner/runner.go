// Package runner claims runs from a control plane and carries each out in a process of
// its own, from the contract to the receipt.
//
//	r := &runner.Runner{Plane: client, Dir: dir, Pool: "default", Slots: 4, Start: start, ...}
//	err := r.Serve(ctx, drain)
//
// A claim is on disk before anything is done about it. What was left by a runner that
// was killed is finished by the next one: a run that was claimed ends in one receipt,
// and no program is started twice. Left over: a claim whose answer was lost on its way
// is the plane's to give away again.
package runner

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"egressd/internal/run/ledger"
	"egressd/internal/run/order"
	"egressd/internal/run/plane"
	"egressd/internal/run/receipt/format"
)

// Names in a runner's directory.
const (
	keyName      = "runner.key.pem"
	publicName   = "runner.pub.pem"
	identityName = "identity.json"
	jobsName     = "jobs"
	claimName    = "claim.json"
)

// Runner carries out the runs of one pool.
type Runner struct {
	Plane    *plane.Client
	PlaneKey string // public key that contracts are signed with, in PEM; "": it is not known, and not checked
	Dir      string // of this runner, private; it is made
	Pool     string
	Token    string // to enroll with; "": this runner is enrolled
	Slots    int    // runs at a time, at least 1
	Log      *slog.Logger

	// Start starts the process of a job whose directory holds what it needs; see [Work].
	Start func(dir string) (Process, error)

	// Idle is the time between two questions for work. Zero is a second.
	Idle time.Duration

	key   ledger.Keys
	own   format.Key
	who   plane.Identity
	Stats Stats
}

// Stats count what a runner has done.
type Stats struct {
	Claimed, Completed, Failed, Lost, Errors atomic.Int64
	Running                                  atomic.Int64
}

// Process is a job on its way.
type Process interface {
	// Tell gives the process what is on no disk, and keeps the line open: the process
	// ends its run when the line is closed.
	Tell(text []byte) error
	Close() error // closes the line
	Wait() error  // reports how it ended
}

// Serve claims runs until ctx ends, and returns when those under way have ended and are
// delivered. When kill ends, they are ended.
func (r *Runner) Serve(ctx, kill context.Context) error {
	if r.Idle == 0 {
		r.Idle = time.Second
	}
	if err := r.enroll(ctx); err != nil {
		return err
	}
	left, err := r.left()
	if err != nil {
		return err
	}
	r.Log.Info("runner ready", "runner", r.who.RunnerID, "key", format.KeyID(r.own.PublicPEM()), "pool", r.Pool, "left", len(left))
	jobs := make(chan string, len(left))
	for _, dir := range left {
		jobs <- dir
	}
	close(jobs)
	var slots sync.WaitGroup
	for range max(r.Slots, 1) {
		slots.Go(func() {
			for dir := range jobs {
				r.finish(kill, dir)
			}
			r.slot(ctx, kill)
		})
	}
	slots.Wait()
	return nil
}

// slot carries out one run after another.
func (r *Runner) slot(ctx, kill context.Context) {
	for ctx.Err() == nil {
		// A claim that is on its way is not given up when ctx ends: the plane may have
		// given the run already.
		claim, err := r.Plane.Claim(kill, r.who.Token, r.Pool)
		switch {
		case err != nil && ctx.Err() != nil:
			return
		case err != nil:
			r.Stats.Errors.Add(1)
			r.Log.Error("claiming a run", "err", err)
		case claim != nil:
			r.carryOut(kill, claim)
			continue
		}
		select {
		case <-ctx.Done():
		case <-time.After(r.Idle):
		}
	}
}

// enroll reads the runner's key and identity, or makes them.
func (r *Runner) enroll(ctx context.Context) error {
	if err := os.MkdirAll(filepath.Join(r.Dir, jobsName), 0o700); err != nil {
		return err
	}
	r.key = ledger.Keys{Default: filepath.Join(r.Dir, keyName)}
	identity := filepath.Join(r.Dir, identityName)
	text, err := os.ReadFile(identity)
	if err == nil {
		if err = json.Unmarshal(text, &r.who); err == nil {
			r.own, _, err = r.key.Open(ctx, r.key.Default)
		}
		if err != nil {
			return fmt.Errorf("%s: %w: remove the directory and enroll again", r.Dir, err)
		}
		return nil
	}
	if !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if r.Token == "" {
		return errors.New("runner is not enrolled and no enroll token was provided: give --enroll-token")
	}
	if err := r.makeKey(ctx); err != nil {
		return err
	}
	again := *r.Plane
	again.Patience = time.Minute
	if r.who, err = again.Enroll(ctx, r.Token, r.own.PublicPEM(), r.Pool); err != nil {
		return fmt.Errorf("enrolling: %w", err)
	}
	if text, err = json.Marshal(r.who); err != nil {
		return err
	}
	return write(identity, text)
}

// makeKey makes the runner's key, unless an earlier try has.
func (r *Runner) makeKey(ctx context.Context) (err error) {
	if r.own, _, err = r.key.Open(ctx, r.key.Default); err == nil || !errors.Is(err, os.ErrNotExist) {
		return err
	}
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	text, err := format.EncodePrivate(private)
	if err != nil {
		return err
	}
	if err := write(r.key.Default, text); err != nil {
		return err
	}
	if r.own, _, err = r.key.Open(ctx, r.key.Default); err != nil {
		return err
	}
	return write(filepath.Join(r.Dir, publicName), []byte(r.own.PublicPEM()))
}

// left lists the jobs that an earlier runner did not deliver.
func (r *Runner) left() (dirs []string, err error) {
	entries, err := os.ReadDir(filepath.Join(r.Dir, jobsName))
	for _, e := range entries {
		dir := filepath.Join(r.Dir, jobsName, e.Name())
		if _, err := os.Stat(filepath.Join(dir, claimName)); err != nil {
			_ = os.RemoveAll(dir) // no claim was accepted in it
			continue
		}
		dirs = append(dirs, dir)
	}
	return dirs, err
}

// write puts a private file in its place, whole or not at all, and on disk.
func write(name string, text []byte) error {
	f, err := os.CreateTemp(filepath.Dir(name), ".new-*") // mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

// valid refuses a claim of which no receipt can come.
func (r *Runner) valid(c *plane.Claim) (format.Contract, error) {
	contract, err := order.Read(c.Contract)
	switch {
	case err != nil:
	case contract.RunID != c.RunID:
		err = fmt.Errorf("the claim is for %q, and its contract for %q", c.RunID, contract.RunID)
	case contract.Runner.Pool != r.Pool:
		err = fmt.Errorf("the contract is for the pool %q, and this runner is in %q", contract.Runner.Pool, r.Pool)
	}
	return contract, err
}

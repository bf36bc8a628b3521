package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"egressd/internal/run/job"
	"egressd/internal/run/ledger"
	"egressd/internal/run/plane"
	"egressd/internal/run/receipt/chain"
	"egressd/internal/run/receipt/format"
)

// maxUndelivered is how many receipts that the plane did not take are kept.
const maxUndelivered = 1000

// delivery is a run on its way to the plane. One goroutine uses it.
type delivery struct {
	*Runner
	dir   string
	claim *claim
	log   *slog.Logger

	offset int64 // in the journal: what is before it was read
	sent   int   // entries that the plane has
	unsure bool  // an earlier runner may have sent more
	broken error // the plane does not take the events
}

// finish finishes a job that an earlier runner left.
func (r *Runner) finish(kill context.Context, dir string) {
	text, err := os.ReadFile(filepath.Join(dir, claimName))
	c := new(claim)
	if err == nil {
		err = json.Unmarshal(text, c)
	}
	if err != nil {
		r.Log.Error("a job that was left cannot be read", "dir", dir, "err", err)
		return
	}
	r.Stats.Running.Add(1)
	defer r.Stats.Running.Add(-1)
	d := &delivery{Runner: r, dir: dir, claim: c, log: r.Log.With("run", c.RunID), sent: len(c.Events), unsure: true}
	d.log.Info("finishing a run that an earlier runner left")
	d.finish(kill)
}

// errUnrecorded is that there can be no receipt.
var errUnrecorded = errors.New("nothing can be put on record")

// refuse ends a job that was not begun.
func (d *delivery) refuse(ctx context.Context, why error) error {
	o, err := d.claim.order()
	if err == nil {
		_, err = job.Refuse(ctx, job.Config{Dir: d.dir, Journals: d.dir, Order: o, Key: d.own, KeySpec: d.key.Default}, why)
	}
	if err != nil {
		return fmt.Errorf("%w of the run: %w", errUnrecorded, err)
	}
	return nil
}

// finish sees to it that the job has a bundle, and delivers it. What the plane did not
// answer stays for the next runner.
func (d *delivery) finish(kill context.Context) {
	b, err := d.bundle(kill)
	if err == nil {
		err = d.deliver(kill, b)
	}
	no := (*plane.Error)(nil)
	switch {
	case err == nil:
		if b.Receipt.Status == format.StatusCompleted {
			d.Stats.Completed.Add(1)
		} else {
			d.Stats.Failed.Add(1)
		}
		d.log.Info("delivered", "status", b.Receipt.Status)
	case errors.Is(err, errUnrecorded), errors.As(err, &no):
		d.Stats.Lost.Add(1)
		d.log.Error("the plane does not take the run's receipt, which is kept", "err", err, "file", d.keep())
	default:
		d.Stats.Errors.Add(1)
		d.log.Error("the run is not delivered: the next start tries again", "err", err)
		return
	}
	if err := errors.Join(removeWork(d.claim.Work), os.RemoveAll(d.dir)); err != nil {
		d.log.Error("removing a job", "err", err)
	}
}

// bundle is the job's, which is made if its process was killed.
func (d *delivery) bundle(ctx context.Context) (format.Bundle, error) {
	var b format.Bundle
	until := time.Now().Add(held)
	for {
		text, err := os.ReadFile(filepath.Join(d.dir, job.Bundle))
		if err == nil {
			return b, json.Unmarshal(text, &b)
		}
		if !errors.Is(err, os.ErrNotExist) {
			return b, err
		}
		journal := ledger.JournalOf(d.dir, d.claim.RunID)
		if _, err := os.Stat(journal); errors.Is(err, os.ErrNotExist) {
			if err := d.refuse(ctx, errors.New("the runner ended before the program began")); err != nil {
				return b, err
			}
			continue
		}
		open := func(spec string) (format.Key, error) {
			key, _, err := d.key.Open(ctx, spec)
			return key, err
		}
		failed := ledger.ErrInUse // an earlier runner's process still has it
		ledger.Recover(d.dir, open, time.Now, func(_ string, err error) { failed = err })
		switch {
		case failed == nil:
			continue
		case !errors.Is(failed, ledger.ErrInUse) || time.Now().After(until):
			return b, failed
		}
		select {
		case <-time.After(look):
		case <-ctx.Done():
			return b, ctx.Err()
		}
	}
}

// deliver posts what the plane has not got yet, and the receipt.
func (d *delivery) deliver(ctx context.Context, b format.Bundle) error {
	if d.broken != nil {
		return d.broken
	}
	if d.sent > len(b.Events) {
		return fmt.Errorf("the receipt has %d events, and %d were sent", len(b.Events), d.sent)
	}
	if err := d.post(ctx, b.Events[d.sent:]); err != nil {
		return err
	}
	signed, err := d.Plane.Complete(ctx, d.claim.RunID, d.claim.Token, b.Receipt)
	if errors.Is(err, plane.ErrSpent) && d.unsure {
		d.log.Warn("the run was completed before; the plane's signature is not known here")
		return nil
	}
	if err != nil {
		return err
	}
	b.Receipt.Signatures = signed.Signatures
	if d.PlaneKey != "" && !b.Receipt.SignedBy(format.SignerPlane, d.PlaneKey) {
		d.log.Error("the plane's signature of the receipt is not that of its key", "key", format.KeyID(d.PlaneKey))
	}
	return nil
}

// postJournal posts what the job has written so far.
func (d *delivery) postJournal(ctx context.Context) error {
	entries, next, err := ledger.Tail(ledger.JournalOf(d.dir, d.claim.RunID), d.offset)
	if err != nil {
		return err
	}
	d.offset = next
	for len(entries) > 0 && entries[0].Seq < d.sent {
		entries = entries[1:]
	}
	err = d.post(ctx, entries)
	if no := (*plane.Error)(nil); err != nil && !errors.As(err, &no) {
		d.offset, err = 0, nil // no answer: again with the next look
	}
	return err
}

// post sends entries, each after the blob that it names.
func (d *delivery) post(ctx context.Context, entries []chain.Entry) error {
	for _, e := range entries {
		var body struct {
			Type string `json:"type"`
			Hash string `json:"hash"`
		}
		if err := json.Unmarshal(e.Event, &body); err != nil {
			return err
		}
		if body.Type != "artifact.created" {
			continue
		}
		data, err := os.ReadFile(filepath.Join(d.dir, job.Blobs, filepath.Base(body.Hash)))
		if err != nil {
			return err
		}
		if err := d.Plane.PutBlob(ctx, d.claim.Token, data); err != nil {
			return fmt.Errorf("storing what came of the run: %w", err)
		}
	}
	if err := d.Plane.Events(ctx, d.claim.RunID, d.claim.Token, entries, d.unsure); err != nil {
		return err
	}
	d.sent += len(entries)
	return nil
}

// keep puts a receipt that the plane did not take where an operator finds it, and
// reports where.
func (d *delivery) keep() string {
	dir := filepath.Join(d.Dir, "undelivered")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return ""
	}
	if all, err := os.ReadDir(dir); err == nil && len(all) >= maxUndelivered {
		return "" // an operator has not looked for long
	}
	name := filepath.Join(dir, d.claim.RunID+".json")
	if err := os.Rename(filepath.Join(d.dir, job.Bundle), name); err != nil {
		return ""
	}
	return name
}

package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"egressd/internal/run/job"
	"egressd/internal/run/ledger"
	"egressd/internal/run/order"
	"egressd/internal/run/plane"
	"egressd/internal/run/receipt/chain"
	"egressd/internal/run/receipt/format"
)

// Times.
const (
	look = 200 * time.Millisecond // between two looks at a journal under way
	held = 2 * time.Minute        // for the process of an earlier runner to end its run
)

// claim is a claim on disk. Secrets are not in it.
type claim struct {
	RunID    string          `json:"runId"`
	Contract json.RawMessage `json:"contract"`
	Token    string          `json:"claimToken"`
	Events   []chain.Entry   `json:"events"`
	Runner   format.Runner   `json:"runner"`
	Plane    string          `json:"planePublicKeyPem"`
	Pool     string          `json:"pool"`
	Key      string          `json:"key"`  // file
	Work     string          `json:"work"` // directory for the work tree
}

// workPrefix begins the name of every directory for a work tree.
const workPrefix = "launch-run-"

// removeWork removes the directory of a work tree, "" is none.
func removeWork(dir string) error {
	if !strings.HasPrefix(filepath.Base(dir), workPrefix) {
		return nil
	}
	return os.RemoveAll(dir)
}

// order is the contract with what belongs to it.
func (c *claim) order() (ledger.Order, error) {
	contract, err := order.Read(c.Contract)
	return ledger.Order{Contract: contract, Plane: c.Plane, Events: c.Events, Runner: c.Runner}, err
}

// carryOut does all that a claim asks for.
func (r *Runner) carryOut(kill context.Context, got *plane.Claim) {
	r.Stats.Claimed.Add(1)
	r.Stats.Running.Add(1)
	defer r.Stats.Running.Add(-1)
	log := r.Log.With("run", got.RunID)
	contract, err := r.valid(got)
	if err != nil {
		r.Stats.Lost.Add(1)
		log.Error("the plane gave a claim of which no receipt can come", "err", err)
		return
	}
	dir := filepath.Join(r.Dir, jobsName, got.RunID)
	c := &claim{
		RunID: got.RunID, Contract: got.Contract, Token: got.Token, Events: got.Events, Plane: r.PlaneKey, Pool: r.Pool, Key: r.key.Default,
		Runner: format.Runner{
			RunnerID: r.who.RunnerID, KeyID: format.KeyID(r.own.PublicPEM()), Pool: r.Pool, AttestationTier: "mock", Isolation: order.Isolation(contract),
		},
	}
	c.Work, err = os.MkdirTemp("", workPrefix)
	var text []byte
	if err == nil {
		text, err = json.Marshal(c)
	}
	if err == nil {
		err = os.Mkdir(dir, 0o700)
	}
	if err == nil {
		err = write(filepath.Join(dir, claimName), text)
	}
	if err != nil {
		_ = removeWork(c.Work)
		r.Stats.Lost.Add(1)
		log.Error("a claimed run cannot be begun", "err", err)
		return
	}
	log.Info("claimed")
	d := &delivery{Runner: r, dir: dir, claim: c, log: log, sent: len(c.Events)}
	if err := r.fetch(kill, dir, contract); err != nil {
		if err := d.refuse(kill, err); err != nil {
			log.Error("a run that cannot be begun", "err", err)
		}
	} else if err := d.run(kill, got.Secrets); err != nil {
		log.Error("the run's process", "err", err)
	}
	d.finish(kill)
}

// fetch gets the workspace that a contract begins with. A contract that is refused
// begins with none.
func (r *Runner) fetch(ctx context.Context, dir string, c format.Contract) error {
	terms := order.Terms{Pool: r.Pool, Plane: r.PlaneKey, Isolations: []string{order.Isolation(c)}, Now: time.Now(), Bounded: true}
	if c.Execution != nil && c.Execution.Env != nil {
		terms.Inherit = c.Execution.Env.Inherit // the process of the job judges that
	}
	if order.Check(c, terms) != nil || c.Workspace.BaseRef == "" {
		return nil // the process of the job says why
	}
	if err := c.Workspace.Validate(); err != nil {
		return &order.Failure{Class: order.CaptureFailed, Message: "workspace: " + err.Error()}
	}
	blobs := filepath.Join(dir, job.Capture, "blobs")
	if err := os.MkdirAll(blobs, 0o700); err != nil {
		return err
	}
	hashes := []string{c.Workspace.BundleHash}
	if c.Workspace.DirtyDiffHash != "" {
		hashes = append(hashes, c.Workspace.DirtyDiffHash)
	}
	for _, f := range c.Workspace.UntrackedFiles {
		hashes = append(hashes, f.Hash)
	}
	left := int64(maxWorkspace)
	for _, hash := range hashes {
		data, err := r.Plane.Blob(ctx, hash)
		if err == nil {
			if left -= int64(len(data)); left < 0 {
				err = fmt.Errorf("the workspace is larger than %d bytes", int64(maxWorkspace))
			}
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(blobs, hash), data, 0o600)
		}
		if err != nil {
			return &order.Failure{Class: order.TransferFailed, Message: "the workspace: " + err.Error()}
		}
	}
	text, err := json.Marshal(c.Workspace)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, job.Capture, "manifest.json"), text, 0o600)
}

const maxWorkspace = 2 << 30 // bytes of all blobs of one

// run starts the process of the job, and posts its events while it runs.
func (d *delivery) run(kill context.Context, secrets []plane.Secret) error {
	values := map[string]string{}
	for _, s := range secrets {
		values[s.Name] = s.Value
	}
	text, err := json.Marshal(values)
	if err != nil {
		return err
	}
	p, err := d.Start(d.dir)
	if err != nil {
		return err
	}
	told := p.Tell(append(text, '\n'))
	ended := make(chan error, 1)
	go func() { ended <- p.Wait() }()
	stop := context.AfterFunc(kill, func() { _ = p.Close() })
	defer stop()
	defer p.Close() //nolint:errcheck // it has ended
	ticks := time.NewTicker(look)
	defer ticks.Stop()
	for {
		select {
		case err := <-ended:
			return errors.Join(told, err)
		case <-ticks.C:
			if d.broken == nil {
				if d.broken = d.postJournal(kill); d.broken != nil {
					d.log.Error("the plane does not take the run's events: the run is ended", "err", d.broken)
					_ = p.Close()
				}
			}
		}
	}
}

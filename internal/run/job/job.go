// Package job carries out what a contract orders: from the workspace to the signed
// receipt.
//
//	done, err := job.Run(ctx, job.Config{Launcher: l, Dir: dir, Order: order, ...})
//
// A job has a directory, private to the user: capture holds the workspace that was
// ordered, if there is one; blobs gets what came of the run, each under its hash, and
// bundle.json the receipt. The journal is beside them, so that a job whose process was
// killed ends in a receipt as well: see [ledger.Recover].
//
// Whatever fails after the journal has begun is the last event of the run, with its
// class, and not an error.
package job

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"egressd/internal/run"
	"egressd/internal/run/ledger"
	"egressd/internal/run/order"
	"egressd/internal/run/receipt/canonical"
	"egressd/internal/run/receipt/chain"
	"egressd/internal/run/receipt/format"
	"egressd/internal/run/workspace"
	"egressd/internal/run/workspace/redact"
	"egressd/policy"
)

// Names in the directory of a job.
const (
	Capture = "capture"
	Blobs   = "blobs"
	Bundle  = "bundle.json"
	Result  = "result" // a directory that launch workspace pull takes
)

// Kinds of content that leave a job, as boundary.crossed has them.
const (
	codeDiff   = "code-diff"
	sessionLog = "session-log"
)

// Config is one job. The caller makes the directories.
type Config struct {
	Launcher *run.Launcher // its environment is what a program may get of this machine
	Dir      string        // of the job
	Journals string        // of the journal
	Work     string        // the work tree is made here; nothing may be there
	Order    ledger.Order  // Hash is filled in
	Key      format.Key
	KeySpec  string

	Secrets []redact.Secret   // that were released, with their values
	Scopes  map[string]string // of secrets that are released now, by name; nil: the events so far have them
	Terms   order.Terms
	Ceiling *policy.Policy // nil: none
	Self    string         // path of launch
	Echo    *os.File       // gets what the program prints; nil: nobody
}

// Done is what became of a job.
type Done struct {
	Status   string // completed or failed
	ExitCode int    // of the program; -1: it did not run
	Failure  *order.Failure
	Refused  []workspace.Problem // changes that stay behind
	Changed  int                 // files
}

type job struct {
	Config
	ledger   *ledger.Ledger
	redactor *redact.Redactor
	done     Done
}

// Run carries out one job. The error is that nothing is on record.
func Run(ctx context.Context, c Config) (Done, error) {
	j := &job{Config: c, redactor: redact.New(c.Secrets), done: Done{ExitCode: -1}}
	values := map[string]string{}
	for _, s := range c.Secrets {
		values[s.Name] = s.Value
	}
	refused := order.Check(c.Order.Contract, c.Terms)
	var p order.Prepared
	if refused == nil {
		p, refused = order.Prepare(c.Order.Contract, order.With{Secrets: values, Self: c.Self})
	}
	j.Order.Hash = p.Hash
	var err error
	if j.ledger, err = j.begin(ctx); err != nil {
		return j.done, err
	}
	if refused == nil {
		refused = j.carryOut(ctx, p)
	}
	return j.done, errors.Join(j.end(refused), j.ledger.Close())
}

// Refuse ends a job that cannot be carried out in a receipt that says so.
func Refuse(ctx context.Context, c Config, why error) (Done, error) {
	j := &job{Config: c, redactor: redact.New(c.Secrets), done: Done{ExitCode: -1}}
	var err error
	if j.ledger, err = j.begin(ctx); err != nil {
		return j.done, err
	}
	return j.done, errors.Join(j.end(why), j.ledger.Close())
}

func (j *job) begin(ctx context.Context) (*ledger.Ledger, error) {
	return ledger.Begin(ctx, ledger.Config{
		Dir: j.Journals, Out: filepath.Join(j.Dir, Bundle), Key: j.Key, KeySpec: j.KeySpec, Now: time.Now, Order: &j.Order,
	})
}

// end chains the last event.
func (j *job) end(failed error) error {
	if failed == nil {
		j.done.Status = format.StatusCompleted
		return j.ledger.End(chain.RunCompleted{})
	}
	f := order.FailureOf(failed)
	message, err := j.redactor.Redact([]byte(f.Message))
	if err != nil {
		message = []byte("the message is too long to be searched for secrets")
	}
	f.Message = string(message)
	j.done.Status, j.done.Failure = format.StatusFailed, f
	return j.ledger.End(chain.RunFailed{Failure: f.Class, Message: f.Message})
}

// carryOut does all between the first events and the last.
func (j *job) carryOut(ctx context.Context, p order.Prepared) error {
	for _, s := range j.Order.Contract.Secrets {
		if scope, ok := j.Scopes[s.Name]; ok {
			if err := j.ledger.Append(chain.SecretReleased{Name: s.Name, Scope: scope}); err != nil {
				return err
			}
		}
	}
	if err := j.materialise(ctx); err != nil {
		return err
	}
	defer os.RemoveAll(j.Work) //nolint:errcheck // what came of it is kept elsewhere
	log, ran := j.execute(ctx, p)
	kept := j.keep(ctx, log)
	return errors.Join(ran, kept)
}

// materialise makes the work tree.
func (j *job) materialise(ctx context.Context) error {
	m := j.Order.Contract.Workspace
	hash, err := manifestHash(j.Order.Contract)
	if err != nil {
		return err
	}
	if m.BaseRef == "" {
		if err := os.Mkdir(j.Work, 0o700); err != nil {
			return err
		}
		return j.ledger.Append(chain.WorkspaceMaterialized{ManifestHash: hash})
	}
	have, err := workspace.ReadManifest(j.captured())
	if err == nil {
		var is string
		if is, err = canonical.Hash(have); err == nil && is != hash {
			err = errors.New("the capture is not that of the contract")
		}
	}
	if err == nil {
		err = workspace.Materialise(ctx, j.captured(), j.Work)
	}
	if err != nil {
		return &order.Failure{Class: order.CaptureFailed, Message: err.Error()}
	}
	return j.ledger.Append(chain.WorkspaceMaterialized{ManifestHash: hash})
}

func (j *job) captured() string { return filepath.Join(j.Dir, Capture) }

// manifestHash is the hash of the manifest as the contract has it.
func manifestHash(c format.Contract) (string, error) {
	text, err := canonical.Marshal(c)
	if err != nil {
		return "", err
	}
	v, err := canonical.Parse(text)
	if err != nil {
		return "", err
	}
	m, err := canonical.Encode(nil, v.(canonical.Object)["workspace"])
	return canonical.Sum(m), err
}

// execute runs the program and reports what it printed. The error says how it failed.
func (j *job) execute(ctx context.Context, p order.Prepared) (log []byte, err error) {
	o, err := j.options(p)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	out, err := newTap(j.Echo, p.LogMax, func() {
		cancel(&order.Failure{Class: order.BudgetExceeded, Message: fmt.Sprintf("the program has printed more than %d bytes", p.LogMax)})
	})
	if err != nil {
		return nil, err
	}
	said, err := newTap(j.Launcher.Stderr, maxSaid, func() {})
	if err != nil {
		_ = out.end()
		return nil, err
	}
	program := *j.Launcher.Program
	program.Stderr = said.in
	o.Order = &run.Order{Ledger: j.ledger, Ceiling: j.Ceiling, Output: out.in}
	began := time.Now()
	(&run.Launcher{Program: &program}).RunUntil(ctx, o)
	took := time.Since(began)
	log, words := out.end(), strings.TrimSpace(string(said.end()))
	exit := j.ledger.Exit()
	switch f := new(order.Failure); {
	case errors.As(context.Cause(ctx), &f):
		err = f
	case exit == nil:
		err = fmt.Errorf("the program did not start: %s", words)
	case exit.Failure != "":
		err = errors.New(exit.Failure)
	default:
		j.done.ExitCode = exit.Code
		if exit.Code != 0 && took >= p.Timeout {
			err = &order.Failure{Class: order.BudgetExceeded, Message: fmt.Sprintf("the time limit of %v is over", p.Timeout)}
		} else if exit.Code != 0 {
			err = fmt.Errorf("agent exited with code %d", exit.Code)
		}
	}
	return log, err
}

// options are those of the one run.
func (j *job) options(p order.Prepared) (*run.Options, error) {
	o := new(run.Options)
	o.Flags() // the defaults
	root, err := os.OpenRoot(j.Work)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	// A link in the tree leads out of it -> os.Root does not follow it.
	info, err := root.Stat(p.Dir)
	if err != nil || !info.IsDir() {
		return nil, &order.Failure{Class: order.CaptureFailed, Message: fmt.Sprintf("execution.cwd: %q is no directory of the workspace", p.Dir)}
	}
	o.Argv, o.NoProject, o.Tier = p.Argv, true, order.Isolation(j.Order.Contract)
	o.Policy.Allow, o.Policy.Audit = p.Allow, p.Open
	o.Program.Dir, o.Program.Env, o.Program.Timeout = filepath.Join(j.Work, p.Dir), p.Env, p.Timeout
	if p.Dir != "." {
		o.Policy.Write = []string{j.Work}
	}
	o.Report.Quiet, o.Report.NoSummary = true, true
	return o, o.Validate()
}

// keep redacts what came of the run and puts it where it leaves from.
func (j *job) keep(ctx context.Context, log []byte) error {
	if j.Order.Contract.Workspace.BaseRef != "" {
		if err := j.keepDiff(context.WithoutCancel(ctx)); err != nil {
			return err
		}
	}
	log, err := j.redactor.Redact(log)
	if err != nil || len(log) == 0 {
		return err
	}
	return j.artifact("log", sessionLog, log)
}

func (j *job) keepDiff(ctx context.Context) error {
	out, err := workspace.Collect(ctx, j.captured(), j.Work, j.Secrets)
	if err == nil {
		out.RunID = j.Order.Contract.RunID
		err = out.Write(filepath.Join(j.Dir, Result))
	}
	if err != nil {
		return &order.Failure{Class: order.CaptureFailed, Message: "what came of the run cannot be collected: " + err.Error()}
	}
	j.done.Refused, j.done.Changed = out.Refused, len(out.Changed)
	for _, f := range out.Changed {
		if err := j.ledger.Append(chain.FileChanged{Path: f.Path, ContentHash: f.ContentHash}); err != nil {
			return err
		}
	}
	if len(out.Diff) == 0 {
		return nil
	}
	return j.artifact("diff", codeDiff, out.Diff)
}

// artifact keeps content under its hash, and then says that it is there.
func (j *job) artifact(kind, class string, data []byte) error {
	hash := canonical.Sum(data)
	dir := filepath.Join(j.Dir, Blobs)
	err := os.MkdirAll(dir, 0o700)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, hash), data, 0o600)
	}
	if err != nil {
		return &order.Failure{Class: order.TransferFailed, Message: err.Error()}
	}
	return errors.Join(
		j.ledger.Append(chain.ArtifactCreated{Kind: kind, Hash: hash}),
		j.ledger.Append(chain.BoundaryCrossed{Direction: "out", ContentHash: hash, DataClass: class}),
	)
}

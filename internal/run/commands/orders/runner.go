package orders

import (
	"context"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"egressd/internal/cli"
	"egressd/internal/cli/policyflags"
	"egressd/internal/run/plane"
	"egressd/internal/run/runner"
)

type runnerOptions struct {
	plane, pool, token, planeKey, ca, dir string
	slots                                 int
	inherit, ceiling                      policyflags.List
}

func (o *runnerOptions) flags() *flag.FlagSet {
	fs := flag.NewFlagSet("launch runner", flag.ContinueOnError)
	fs.StringVar(&o.plane, "plane", "", "claim runs from the control plane at this `URL`")
	fs.StringVar(&o.pool, "pool", "default", "claim runs of this `POOL`")
	fs.StringVar(&o.token, "enroll-token", "", "make this runner known with this `TOKEN`, the first time; or in EGRESSD_ENROLL_TOKEN")
	fs.IntVar(&o.slots, "concurrency", 1, "carry out this many runs `N` at a time")
	fs.StringVar(&o.planeKey, "plane-key", "", "contracts and receipts must be signed by this public key of the plane, in a `FILE`")
	fs.StringVar(&o.ca, "ca", "", "the plane's certificate is signed by an authority in this PEM `FILE`, besides those of the system")
	fs.StringVar(&o.dir, "data", "", "keep the runner's key and jobs in this `DIR`; without it, among launch's records")
	o.own(fs)
	return fs
}

// own are the flags that the process of a job has as well.
func (o *runnerOptions) own(fs *flag.FlagSet) {
	fs.Var(&o.inherit, "inherit", "contracts may ask for this variable `NAME` of the runner")
	fs.Var(&o.ceiling, "policy", "besides its contract, hold each run to this policy `FILE`")
}

// jobWord makes of launch runner the process of one of its jobs.
const jobWord = "job"

// runner claims runs until it is told to end.
func (l launcher) runner(args []string) int {
	if len(args) > 0 && args[0] == jobWord {
		return l.job(args[1:])
	}
	var o runnerOptions
	fs := o.flags()
	if code, done := l.Parse(fs, args); done {
		return code
	}
	if fs.NArg() > 0 || o.plane == "" {
		return l.Usage(errors.New("write: launch runner --plane URL --pool NAME --enroll-token TOKEN"))
	}
	if o.slots < 1 || o.slots > 1000 {
		return l.Usage(fmt.Errorf("--concurrency %d: 1 to 1000", o.slots))
	}
	r, err := l.newRunner(&o)
	if err != nil {
		return l.Fail(cli.ExitNo, err)
	}
	defer r.Plane.Close()
	ctx, kill, stop := twoSignals(r.Log)
	defer stop()
	if err := r.Serve(ctx, kill); err != nil {
		return l.Fail(cli.ExitNo, err)
	}
	r.Log.Info("runner ended", "claimed", r.Stats.Claimed.Load(), "completed", r.Stats.Completed.Load(), "failed", r.Stats.Failed.Load(), "lost", r.Stats.Lost.Load())
	return cli.ExitOK
}

func (l launcher) newRunner(o *runnerOptions) (*runner.Runner, error) {
	if _, err := loadCeiling(o.ceiling); err != nil {
		return nil, err
	}
	var roots *x509.CertPool
	if o.ca != "" {
		pem, err := readFile(o.ca)
		if err == nil {
			if roots, err = x509.SystemCertPool(); err == nil && !roots.AppendCertsFromPEM(pem) {
				err = errors.New("this is no certificate in PEM")
			}
		}
		if err != nil {
			return nil, fmt.Errorf("--ca %s: %w", o.ca, err)
		}
	}
	client, err := plane.New(o.plane, roots)
	if err != nil {
		return nil, fmt.Errorf("--plane: %w", err)
	}
	log := slog.New(slog.NewTextHandler(l.Stderr, nil))
	r := &runner.Runner{Plane: client, Dir: o.dir, Pool: o.pool, Token: o.token, Slots: o.slots, Log: log}
	command, err := o.start(l)
	if err != nil {
		return nil, err
	}
	r.Start = command.Start
	if r.Token == "" {
		r.Token = l.Getenv("EGRESSD_ENROLL_TOKEN")
	}
	if o.planeKey != "" {
		if r.PlaneKey, err = readPublic(o.planeKey); err != nil {
			return nil, fmt.Errorf("--plane-key: %w", err)
		}
	} else {
		log.Warn("contracts are taken at the plane's word: to check their signatures, give its public key with --plane-key FILE")
	}
	if r.Dir == "" {
		_, journals, err := l.Receipts()
		if err != nil {
			return nil, err
		}
		r.Dir = filepath.Join(filepath.Dir(journals), "runner")
	}
	r.Dir, err = filepath.Abs(r.Dir)
	return r, err
}

// twoSignals are a context that ends with the first signal that asks to end, and one
// that ends with the second.
func twoSignals(log *slog.Logger) (first, second context.Context, stop func()) {
	first, cancelFirst := context.WithCancel(context.Background())
	second, cancelSecond := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	done := make(chan struct{})
	go func() {
		for _, cancel := range []context.CancelFunc{cancelFirst, cancelSecond} {
			select {
			case <-signals:
				log.Info("ending: runs under way are finished; a second signal ends them")
				cancel()
			case <-done:
				return
			}
		}
	}()
	return first, second, func() { signal.Stop(signals); close(done); cancelFirst(); cancelSecond() }
}

// start is how the process of a job is started: this program again.
func (o *runnerOptions) start(l launcher) (runner.Command, error) {
	self, err := os.Executable()
	c := runner.Command{Program: self, Name: l.Name, Args: []string{"runner", jobWord}, Env: l.Environ, Stderr: l.Stderr}
	for _, name := range o.inherit {
		c.Args = append(c.Args, "--inherit", name)
	}
	for _, name := range o.ceiling {
		c.Args = append(c.Args, "--policy", name)
	}
	return c, err
}

// job is the process of one job of a runner.
func (l launcher) job(args []string) int {
	var o runnerOptions
	fs := flag.NewFlagSet("launch runner job", flag.ContinueOnError)
	o.own(fs)
	if code, done := l.Parse(fs, args); done {
		return code
	}
	if fs.NArg() != 1 {
		return l.Usage(errors.New("runner job takes the directory of a job"))
	}
	ceiling, err := loadCeiling(o.ceiling)
	if err != nil {
		return l.Fail(cli.ExitNo, err)
	}
	if err := runner.Work(context.Background(), l.bare(o.inherit), fs.Arg(0), l.Stdin, runner.Limits{Inherit: o.inherit, Ceiling: ceiling}); err != nil {
		return l.Fail(cli.ExitNo, err)
	}
	return cli.ExitOK
}

package orders

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"egressd/internal/cli"
	"egressd/internal/cli/policyflags"
	"egressd/internal/run"
	"egressd/internal/run/job"
	"egressd/internal/run/ledger"
	"egressd/internal/run/order"
	"egressd/internal/run/receipt/format"
	"egressd/internal/run/script"
	"egressd/internal/run/workspace/redact"
	"egressd/policy"
)

type runOptions struct {
	capture, key, plane       string
	secrets, inherit, ceiling policyflags.List
}

func (o *runOptions) flags() *flag.FlagSet {
	fs := flag.NewFlagSet("launch run", flag.ContinueOnError)
	fs.StringVar(&o.capture, "capture", "", "the workspace that the contract names is in this `DIR`")
	fs.StringVar(&o.key, "key", "", "sign the receipt with this `KEY`, as launch --receipt-key has it; without it, with the key of your receipts")
	fs.StringVar(&o.plane, "plane-key", "", "the contract must be signed by this public key, in a `FILE`; without it, by your own")
	fs.Var(&o.secrets, "secret", "give the run the value of this variable `NAME`, if the contract names it")
	fs.Var(&o.inherit, "inherit", "the contract may ask for this variable `NAME` of yours")
	fs.Var(&o.ceiling, "policy", "besides the contract, hold the run to this policy `FILE`")
	return fs
}

// run carries out a contract: the exit code is the program's.
func (l launcher) run(args []string) int {
	var o runOptions
	fs := o.flags()
	if code, done := l.Parse(fs, args); done {
		return code
	}
	if fs.NArg() != 2 {
		return l.Usage(errors.New("write: launch run [flags] CONTRACT DIR, where DIR is a new directory for the receipt"))
	}
	done, err := l.carryOut(&o, fs.Arg(0), fs.Arg(1))
	if err != nil {
		return l.Fail(run.ExitLauncher, err)
	}
	for i, p := range done.Refused {
		if i == 10 {
			l.Say("launch: and %d more\n", len(done.Refused)-i)
			break
		}
		l.Say("launch: stays behind: %s: %s\n", cli.Safe(p.Path), cli.Safe(p.Why))
	}
	if done.Failure != nil {
		l.Say("launch: the run failed: %s: %s\n", done.Failure.Class, cli.Safe(done.Failure.Message))
	}
	l.Say("launch: %d files changed; the receipt is in %s\n", done.Changed, cli.Safe(filepath.Join(fs.Arg(1), job.Bundle)))
	switch {
	case done.ExitCode > 0:
		return done.ExitCode
	case done.Failure != nil:
		return run.ExitLauncher
	}
	return cli.ExitOK
}

func (l launcher) carryOut(o *runOptions, contract, dir string) (done job.Done, err error) {
	ctx, stop := untilSignal()
	defer stop()
	text, err := readFile(contract)
	if err != nil {
		return done, err
	}
	c, err := order.Read(text)
	if err != nil {
		return done, fmt.Errorf("%s: %w", contract, err)
	}
	keys, journals, err := l.Receipts()
	if err != nil {
		return done, err
	}
	key, again, err := keys.Open(ctx, o.key)
	if err != nil {
		return done, fmt.Errorf("--key: %w", err)
	}
	plane, err := o.whoOrders(c, key)
	if err != nil {
		return done, err
	}
	values, err := l.secrets(o.secrets)
	if err != nil {
		return done, err
	}
	config := job.Config{
		Journals: journals, Key: key, KeySpec: again,
		Order: ledger.Order{Contract: c, Plane: plane, Runner: format.Runner{
			RunnerID: "local", KeyID: format.KeyID(key.PublicPEM()), Pool: c.Runner.Pool, AttestationTier: "mock", Isolation: order.Isolation(c),
		}},
		Terms: order.Terms{Plane: plane, Isolations: []string{run.TierProcess, script.Tier}, Inherit: o.inherit, Now: time.Now()},
		Echo:  l.Stdout, Scopes: map[string]string{},
	}
	for _, s := range c.Secrets {
		if values[s.Name] == "" {
			return done, fmt.Errorf("the contract names the secret %s: export it and give --secret %s", s.Name, s.Name)
		}
		config.Scopes[s.Name] = s.Scope
		config.Secrets = append(config.Secrets, redact.Secret{Name: s.Name, Value: values[s.Name]})
	}
	if config.Ceiling, err = loadCeiling(o.ceiling); err != nil {
		return done, err
	}
	config.Terms.Bounded = config.Ceiling != nil
	if config.Self, err = os.Executable(); err != nil {
		return done, err
	}
	if config.Dir, err = o.place(c, dir); err != nil {
		return done, err
	}
	tmp, err := os.MkdirTemp("", "launch-run-")
	if err != nil {
		return done, err
	}
	defer os.RemoveAll(tmp) //nolint:errcheck // a directory that nobody needs
	config.Work = filepath.Join(tmp, "work")
	config.Launcher = l.bare(o.inherit)
	return job.Run(ctx, config)
}

// whoOrders is the public key that the contract must be signed with.
func (o *runOptions) whoOrders(c format.Contract, own format.Key) (string, error) {
	if o.plane != "" {
		plane, err := readPublic(o.plane)
		if err != nil {
			return "", fmt.Errorf("--plane-key: %w", err)
		}
		return plane, nil
	}
	if c.Issuer.KeyID != format.KeyID(own.PublicPEM()) {
		return "", fmt.Errorf("the contract is signed by %s, which is not your key: if you trust who that is, give the public key with --plane-key FILE", cli.Safe(c.Issuer.KeyID))
	}
	return own.PublicPEM(), nil
}

// place makes the directory of the job, with the capture in it.
func (o *runOptions) place(c format.Contract, dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	switch {
	case c.Workspace.BaseRef != "" && o.capture == "":
		return "", errors.New("the contract begins with a workspace: give its capture with --capture DIR")
	case c.Workspace.BaseRef == "" && o.capture != "":
		return "", errors.New("--capture: the contract begins without a workspace")
	}
	if err := os.Mkdir(dir, 0o700); errors.Is(err, os.ErrExist) {
		return "", fmt.Errorf("%s: %w", dir, errNew)
	} else if err != nil {
		return "", err
	}
	if o.capture == "" {
		return dir, nil
	}
	capture, err := filepath.Abs(o.capture)
	if err != nil {
		return "", err
	}
	return dir, os.Symlink(capture, filepath.Join(dir, job.Capture))
}

// loadCeiling compiles the policy of this machine's operator; nil: there is none.
func loadCeiling(names []string) (*policy.Policy, error) {
	if len(names) == 0 {
		return nil, nil
	}
	f := policyflags.Flags{Files: names}
	docs, err := f.Documents(os.ReadFile)
	if err != nil {
		return nil, err
	}
	return policy.Compile(docs...)
}

// given are the variables of this machine that launch itself needs for a run, and that
// say nothing of the person.
var given = []string{
	"PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ", "TMPDIR", "XDG_STATE_HOME",
	"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "NO_PROXY", "no_proxy", "ALL_PROXY", "all_proxy",
	"SSL_CERT_FILE", "SSL_CERT_DIR",
}

// bare is the launcher without the variables of the person.
//
// Threat: whoever orders a run gets the keys that lie in the runner's environment: an
// agent is given its own by name -> a run has the secrets of its contract, and what
// --inherit names.
func (l launcher) bare(inherit []string) *run.Launcher {
	p := *l.Program
	p.Environ = nil
	for _, kv := range l.Environ {
		name, _, _ := strings.Cut(kv, "=")
		if slices.Contains(given, name) || slices.Contains(inherit, name) {
			p.Environ = append(p.Environ, kv)
		}
	}
	return &run.Launcher{Program: &p}
}

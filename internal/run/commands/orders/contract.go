package orders

import (
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/user"
	"strings"
	"time"

	"egressd/internal/cli"
	"egressd/internal/cli/policyflags"
	"egressd/internal/run"
	"egressd/internal/run/agents"
	"egressd/internal/run/order"
	"egressd/internal/run/receipt/canonical"
	"egressd/internal/run/receipt/chain"
	"egressd/internal/run/receipt/execution"
	"egressd/internal/run/receipt/format"
	"egressd/internal/run/script"
	"egressd/internal/run/workspace"
)

type contractOptions struct {
	out, key, id, pool, capture, dir string
	agent, tier                      string
	allow, secrets                   policyflags.List
	timeout, expires                 time.Duration
}

func (o *contractOptions) flags() *flag.FlagSet {
	fs := flag.NewFlagSet("launch contract", flag.ContinueOnError)
	fs.StringVar(&o.out, "out", "", "write the contract to this new `FILE` (the standard output without it)")
	fs.StringVar(&o.key, "key", "", "sign with this `KEY`, as launch --receipt-key has it; without it, with the key of your receipts")
	fs.StringVar(&o.id, "id", "", "the `ID` of the run; without it, a random one")
	fs.StringVar(&o.pool, "pool", "local", "runners of this `POOL` may carry it out")
	fs.StringVar(&o.capture, "capture", "", "begin with the workspace in this `DIR`, which launch workspace capture made")
	fs.StringVar(&o.dir, "workdir", "", "run in this `DIR` of the workspace")
	fs.StringVar(&o.agent, "agent", "", "run this agent `NAME` with the prompt that follows: "+strings.Join(agents.Names(), ", "))
	fs.StringVar(&o.tier, "tier", run.TierProcess, "sandbox `TIER`: process or hermetic")
	fs.Var(&o.allow, "allow", "the run may reach this `HOST`, at any port")
	fs.Var(&o.secrets, "secret", "the run gets the secret of this `NAME`")
	fs.Func("timeout", "end the run after this `TIME` (90, 90s, 10m); without it, after 10m", func(s string) (err error) {
		o.timeout, err = cli.ParseLimit(s)
		return err
	})
	o.expires = time.Hour
	fs.Func("expires", "the contract is good for this `TIME` from now on; without it, 1h", func(s string) (err error) {
		o.expires, err = cli.ParseLimit(s)
		return err
	})
	return fs
}

// contract writes a signed contract.
func (l launcher) contract(args []string) int {
	var o contractOptions
	fs := o.flags()
	if code, done := l.Parse(fs, args); done {
		return code
	}
	text, err := l.write(&o, fs.Args())
	if err != nil {
		return l.Fail(cli.ExitNo, err)
	}
	if o.out == "" {
		return l.Print(string(text))
	}
	f, err := os.OpenFile(o.out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, os.ErrExist) {
		err = fmt.Errorf("--out %s: %w", o.out, errNew)
	}
	if err != nil {
		return l.Fail(cli.ExitNo, err)
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Close()); err != nil {
		return l.Fail(cli.ExitNo, err)
	}
	return cli.ExitOK
}

// write makes the text of a contract and holds it against what a runner asks.
func (l launcher) write(o *contractOptions, argv []string) ([]byte, error) {
	ctx, stop := untilSignal()
	defer stop()
	keys, _, err := l.Receipts()
	if err != nil {
		return nil, err
	}
	key, _, err := keys.Open(ctx, o.key)
	if err != nil {
		return nil, fmt.Errorf("--key: %w", err)
	}
	c, err := o.order(argv, key)
	if err != nil {
		return nil, err
	}
	if err := c.Sign(ctx, key, format.SignerPlane); err != nil {
		return nil, fmt.Errorf("--key: %w", err)
	}
	text, err := canonical.Marshal(c)
	if err != nil {
		return nil, err
	}
	whole, err := order.Read(text)
	if err != nil {
		return nil, err
	}
	terms := order.Terms{Pool: o.pool, Plane: key.PublicPEM(), Isolations: []string{run.TierProcess, script.Tier}, Now: time.Now()}
	if err := order.Check(whole, terms); err != nil {
		return nil, err
	}
	if _, err := order.Prepare(whole, order.With{Self: "launch"}); err != nil {
		return nil, err
	}
	return append(text, '\n'), nil
}

// order makes the contract, unsigned.
func (o *contractOptions) order(argv []string, key format.Key) (format.Contract, error) {
	now := time.Now()
	who := "unknown"
	if u, err := user.Current(); err == nil {
		who = u.Username
	}
	if o.id == "" {
		o.id = "run_" + strings.ToLower(rand.Text()[:16])
	}
	if !order.ValidPool(o.pool) {
		return format.Contract{}, fmt.Errorf("--pool %q: letters, digits, _, ., : and - only, 128 at most", o.pool)
	}
	c := format.Contract{
		Version: format.VersionContract, RunID: o.id, IssuedAt: chain.Stamp(now), ExpiresAt: chain.Stamp(now.Add(o.expires)),
		Issuer: format.Issuer{KeyID: format.KeyID(key.PublicPEM()), Role: format.SignerPlane}, RequestedBy: format.Actor{Kind: "human", ID: who},
		Runner: format.Pool{Pool: o.pool}, Disclosure: "none", Isolation: o.tier, Secrets: []format.Secret{},
		Network:   format.Network{DefaultDeny: true, AllowHosts: append([]string{}, o.allow...)},
		Workspace: format.Manifest{Version: format.VersionManifest, UntrackedFiles: []format.ManifestFile{}, DeniedPatterns: []string{}, DeniedPaths: []string{}},
	}
	for _, name := range o.secrets {
		c.Secrets = append(c.Secrets, format.Secret{Name: name, Scope: "run"})
	}
	if o.capture != "" {
		var err error
		if c.Workspace, err = workspace.ReadManifest(o.capture); err != nil {
			return c, fmt.Errorf("--capture: %w", err)
		}
	}
	e, err := o.execution(argv)
	if err != nil {
		return c, err
	}
	e.Dir, e.TimeoutMS = o.dir, float64(o.timeout.Milliseconds())
	c.Execution, c.Agent.Kind, c.Task.Prompt = e, agents.Command, strings.Join(argv, " ")
	if o.agent != "" {
		c.Agent.Kind = o.agent
	}
	// The digest of what the network part says stands for a policy: there is no other.
	c.PolicyHash, err = canonical.Hash(c.Network)
	return c, err
}

// execution is what runs. A shell with a script is the one kind that every tier has.
func (o *contractOptions) execution(argv []string) (*execution.Execution, error) {
	switch {
	case o.agent != "" && len(argv) != 1:
		return nil, errors.New(`--agent takes one prompt, in quotes: launch contract --agent claude-code "fix the tests"`)
	case o.agent == agents.Command:
		return &execution.Execution{Kind: "shell", Script: argv[0]}, nil
	case o.agent != "":
		return &execution.Execution{Kind: "agent", Agent: o.agent, Prompt: argv[0]}, nil
	case len(argv) == 0:
		return nil, errors.New("no program given: launch contract [flags] -- PROGRAM [ARGUMENT...]")
	case len(argv) == 3 && (argv[0] == "sh" || argv[0] == "bash") && argv[1] == "-c":
		return &execution.Execution{Kind: "shell", Shell: argv[0], Script: argv[2]}, nil
	}
	return &execution.Execution{Kind: "argv", Command: argv[0], Args: argv[1:]}, nil
}

package evidence

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"

	"egressd/internal/cli"
	"egressd/internal/cli/policyflags"
	"egressd/internal/run/receipt"
	"egressd/internal/run/receipt/format"
)

type verifyOptions struct {
	strict      bool
	keys        policyflags.List
	attestation string
}

func (o *verifyOptions) flags() *flag.FlagSet {
	fs := flag.NewFlagSet("verify", flag.ContinueOnError)
	fs.BoolVar(&o.strict, "strict", false, "also check times, isolation, networkAccessed, artifacts and the order of events")
	fs.Var(&o.keys, "key", "the signer must be this `KEY`: a file with a public key, or its ed25519: ID")
	fs.StringVar(&o.attestation, "attestation", "", "also check that this `FILE` of launch attest is about this receipt, by its runner")
	return fs
}

// verify checks a receipt offline: 0 good, 1 not.
func (l launcher) verify(args []string) int {
	var o verifyOptions
	fs := o.flags()
	if code, done := l.Parse(fs, args); done {
		return code
	}
	if fs.NArg() != 1 {
		return l.Usage(errors.New("write: launch verify [--strict] [--key KEY] [--attestation FILE] RECEIPT"))
	}
	pinned, err := o.pinned()
	if err != nil {
		return l.Usage(fmt.Errorf("--key: %w", err))
	}
	text, facts, ok := l.good(fs.Arg(0), receipt.Options{Strict: o.strict, Pinned: pinned})
	if !ok {
		return cli.ExitNo
	}
	if o.attestation != "" {
		if err := attested(o.attestation, text); err != nil {
			return l.Fail(cli.ExitNo, fmt.Errorf("--attestation %w", err))
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "good: run %s %s, %d events, from %s to %s, isolation %s\n",
		cli.Safe(facts.RunID), facts.Status, facts.Events, cli.Safe(facts.Started), cli.Safe(facts.Ended), cli.Safe(facts.Isolation))
	for _, n := range facts.Network {
		fmt.Fprintf(&b, "  %s %s\n", cli.Safe(n.Decision), cli.Safe(n.Host))
	}
	fmt.Fprintf(&b, "  ordered by %s, run by %s\n", cli.Safe(facts.PlaneKey), cli.Safe(facts.RunnerKey))
	if o.attestation != "" {
		fmt.Fprintf(&b, "  %s says the same\n", cli.Safe(o.attestation))
	}
	if len(pinned) == 0 {
		fmt.Fprintf(&b, "  the keys are those of the file itself: to know who signed, give --key\n")
	}
	return l.Print(b.String())
}

// pinned are the IDs of the keys that --key names.
func (o *verifyOptions) pinned() (ids []string, err error) {
	for _, k := range o.keys {
		if strings.HasPrefix(k, "ed25519:") {
			ids = append(ids, k)
			continue
		}
		text, err := os.ReadFile(k)
		if err != nil {
			return nil, err
		}
		if _, err := format.DecodePublic(string(text)); err != nil {
			return nil, fmt.Errorf("%s: %w", k, err)
		}
		ids = append(ids, format.KeyID(string(text)))
	}
	return ids, nil
}

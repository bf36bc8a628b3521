package main

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

// maxBundle bounds what verify reads, in bytes.
const maxBundle = 1 << 30

type verifyOptions struct {
	strict bool
	keys   policyflags.List
}

func (o *verifyOptions) flags() *flag.FlagSet {
	fs := flag.NewFlagSet("verify", flag.ContinueOnError)
	fs.BoolVar(&o.strict, "strict", false, "also check times, isolation, networkAccessed, artifacts and the order of events")
	fs.Var(&o.keys, "key", "the signer must be this `KEY`: a file with a public key, or its ed25519: ID")
	return fs
}

// verify checks a receipt offline: 0 good, 1 not.
func (l *launcher) verify(args []string) int {
	var o verifyOptions
	fs := o.flags()
	if code, done := l.Parse(fs, args); done {
		return code
	}
	if fs.NArg() != 1 {
		return l.Usage(errors.New("write: launch verify [--strict] [--key KEY] FILE"))
	}
	pinned, err := o.pinned()
	if err != nil {
		return l.Usage(fmt.Errorf("--key: %w", err))
	}
	info, err := os.Stat(fs.Arg(0))
	if err == nil && info.Size() > maxBundle {
		err = fmt.Errorf("%s is longer than %d bytes", fs.Arg(0), maxBundle)
	}
	var text []byte
	if err == nil {
		text, err = os.ReadFile(fs.Arg(0))
	}
	if err != nil {
		return l.Fail(cli.ExitNo, err)
	}
	if problems := receipt.Verify(text, receipt.Options{Strict: o.strict, Pinned: pinned}); len(problems) > 0 {
		for _, p := range problems {
			l.Say("%s: %s\n", cli.Safe(fs.Arg(0)), cli.Safe(p))
		}
		return cli.ExitNo
	}
	facts, err := receipt.Read(text)
	if err != nil {
		return l.Fail(cli.ExitNo, err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "good: run %s %s, %d events, from %s to %s, isolation %s\n",
		cli.Safe(facts.RunID), facts.Status, facts.Events, cli.Safe(facts.Started), cli.Safe(facts.Ended), cli.Safe(facts.Isolation))
	for _, n := range facts.Network {
		fmt.Fprintf(&b, "  %s %s\n", cli.Safe(n.Decision), cli.Safe(n.Host))
	}
	fmt.Fprintf(&b, "  ordered by %s, run by %s\n", cli.Safe(facts.PlaneKey), cli.Safe(facts.RunnerKey))
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

package evidence

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os/signal"
	"strings"
	"syscall"

	"egressd/internal/cli"
	"egressd/internal/run/receipt"
	"egressd/internal/run/receipt/attest"
	"egressd/internal/run/receipt/format"
)

type attestOptions struct {
	key, out, rekor string
}

func (o *attestOptions) flags() *flag.FlagSet {
	fs := flag.NewFlagSet("attest", flag.ContinueOnError)
	fs.StringVar(&o.key, "key", "", "sign with this `KEY`, which must be the one that ran the run, as launch --receipt-key has it; without it, with the key of your receipts")
	fs.StringVar(&o.out, "out", "", "write the attestation to this new `FILE` (the standard output without it)")
	fs.StringVar(&o.rekor, "rekor", "", "also write the entry for a Rekor transparency log to this new `FILE`; nothing is sent")
	return fs
}

// attest writes an in-toto statement about a verified run: 0 written, 1 not.
func (l launcher) attest(args []string) int {
	var o attestOptions
	fs := o.flags()
	if code, done := l.Parse(fs, args); done {
		return code
	}
	if fs.NArg() != 1 {
		return l.Usage(errors.New("write: launch attest [--key KEY] [--out FILE] [--rekor FILE] RECEIPT"))
	}
	text, facts, ok := l.good(fs.Arg(0), receipt.Options{Strict: true})
	if !ok {
		return cli.ExitNo
	}
	envelope, pem, err := l.sign(&o, text, facts)
	if err != nil {
		return l.Fail(cli.ExitNo, err)
	}
	if o.rekor != "" {
		log, err := attest.Entry(envelope, pem)
		if err == nil {
			err = write(o.rekor, log.Entry)
		}
		if err != nil {
			return l.Fail(cli.ExitNo, fmt.Errorf("--rekor: %w", err))
		}
		l.Say("a log that takes %s shows the envelope as sha256:%s, its payload as sha256:%s\n", cli.Safe(o.rekor), log.EnvelopeHash, log.PayloadHash)
	}
	if o.out == "" {
		return l.Print(string(envelope) + "\n")
	}
	if err := write(o.out, envelope); err != nil {
		return l.Fail(cli.ExitNo, fmt.Errorf("--out: %w", err))
	}
	return cli.ExitOK
}

// sign makes the signed envelope of a verified bundle.
func (l launcher) sign(o *attestOptions, bundle []byte, facts receipt.Facts) (envelope []byte, pem string, err error) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	keys, _, err := l.Receipts()
	if err != nil {
		return nil, "", err
	}
	key, _, err := keys.Open(ctx, o.key)
	if err != nil {
		return nil, "", fmt.Errorf("--key: %w", err)
	}
	if id := format.KeyID(key.PublicPEM()); id != facts.RunnerKey {
		return nil, "", fmt.Errorf("the run was signed by %s, and this key is %s: name the right one with --key", facts.RunnerKey, id)
	}
	statement, err := attest.Statement(bundle)
	if err != nil {
		return nil, "", err
	}
	envelope, err = attest.Sign(ctx, statement, key)
	return envelope, key.PublicPEM(), err
}

// attested checks an attestation against the bundle that it is about.
func attested(name string, bundle []byte) error {
	text, err := read(name, maxEnvelope)
	if err != nil {
		return err
	}
	statement, err := attest.Statement(bundle)
	if err != nil {
		return err
	}
	pem, err := receipt.RunnerKey(bundle)
	if err != nil {
		return err
	}
	if err := attest.Check([]byte(strings.TrimSpace(string(text))), statement, pem); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

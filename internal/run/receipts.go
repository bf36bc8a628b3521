package run

import (
	"context"
	"errors"
	"fmt"
	"os/user"
	"path/filepath"
	"strings"
	"time"

	"egressd/internal/cli"
	"egressd/internal/run/ledger"
	"egressd/internal/run/receipt/format"
	"egressd/internal/run/script"
)

// Names in the directory of launch's records.
const (
	journalsName = "receipts"
	keyName      = "receipt.pem"
)

// maxReceiptHosts is how many hosts a contract lists. A longer policy is told by its
// digest alone.
const maxReceiptHosts = 10_000

// validateReceipt refuses a receipt that could not tell the whole of a run.
func (o *Options) validateReceipt() error {
	switch {
	case o.Report.Receipt == "" && o.Report.Key != "":
		return errors.New("--receipt-key is for --receipt FILE")
	case o.Report.Receipt == "":
		return nil
	case o.Tier != TierProcess && o.Tier != script.Tier:
		return fmt.Errorf("--receipt is for --tier process and hermetic: in %s launch does not see every flow", o.Tier)
	case o.Tier == TierProcess && o.Isolation != isolationNetns:
		return fmt.Errorf("--receipt is for --isolation %s: with %s a program may leave around the gate", isolationNetns, o.Isolation)
	case o.Daemon != "":
		return errors.New("--receipt and --egressd exclude each other: the daemon records the flows, and launch does not see them")
	}
	return nil
}

// keys finds the keys of receipts.
func (l *Launcher) keys(dir string) ledger.Keys {
	return ledger.Keys{Default: filepath.Join(dir, keyName), Agent: l.Getenv("SSH_AUTH_SOCK"), Environ: l.Environ}
}

// finishReceipts writes the receipts of runs whose launchers were killed.
func (s *session) finishReceipts() {
	dir, err := s.recordsDir()
	if err != nil {
		return // there are no records
	}
	open := func(spec string) (format.Key, error) {
		key, _, err := s.keys(dir).Open(context.Background(), spec)
		return key, err
	}
	ledger.Recover(filepath.Join(dir, journalsName), open, time.Now, func(out string, err error) {
		switch {
		case err != nil:
			s.note(fmt.Sprintf("the receipt %s of a run whose launcher was killed is not written: %v; its journal is kept in %s",
				cli.Safe(out), err, filepath.Join(dir, journalsName)))
		default:
			s.note(fmt.Sprintf("the launcher of an earlier run was killed; its receipt is in %s", cli.Safe(out)))
		}
	})
}

// order begins the receipt of a run, if one is asked for.
func (s *session) order(ctx context.Context) error {
	if o := s.opts.Order; o != nil {
		s.trail.Also(o.Ledger)
		return nil
	}
	if s.opts.Report.Receipt == "" {
		return nil
	}
	dir, err := s.recordsDir()
	if err != nil {
		return fmt.Errorf("--receipt: %w", err)
	}
	out, err := filepath.Abs(s.opts.Report.Receipt)
	if err != nil {
		return err
	}
	key, again, err := s.keys(dir).Open(ctx, s.opts.Report.Key)
	if err != nil {
		return fmt.Errorf("--receipt-key: %w", err)
	}
	who := "unknown"
	if u, err := user.Current(); err == nil {
		who = u.Username
	}
	isolation := "process"
	if s.opts.Tier == script.Tier {
		isolation = "hermetic"
	}
	s.ledger, err = ledger.Begin(ctx, ledger.Config{
		Dir: filepath.Join(dir, journalsName), Out: out, Key: key, KeySpec: again,
		Session: s.trail.Session, Isolation: isolation, Argv: s.opts.Argv, Agent: s.opts.Agent,
		PolicyHash: strings.TrimPrefix(s.policy.Digest(), "sha256:"), Network: s.network(), User: who, Now: time.Now,
	})
	if err != nil {
		return fmt.Errorf("--receipt: %w", err)
	}
	s.trail.Also(s.ledger)
	return nil
}

// network is the policy as a contract has it: hosts without ports. What counts is
// the policy's digest.
func (s *session) network() format.Network {
	n := format.Network{DefaultDeny: !s.policy.Audit(), AllowHosts: []string{}}
	if allow, _ := s.policy.Count(); allow > maxReceiptHosts {
		n.AllowHosts = append(n.AllowHosts, "*")
		return n
	}
	for rule := range s.policy.Each(false) {
		r := rule.Reach()
		if r.Prefix.IsValid() {
			n.AllowHosts = append(n.AllowHosts, r.Prefix.String())
		}
		if r.Apex {
			n.AllowHosts = append(n.AllowHosts, r.Name)
		}
		if r.Below {
			n.AllowHosts = append(n.AllowHosts, "*."+r.Name)
		}
	}
	return n
}

// endReceipt writes the receipt and says where it is.
func (s *session) endReceipt() error {
	if s.ledger == nil {
		return nil
	}
	if err := s.ledger.Close(); err != nil {
		return err
	}
	s.note(fmt.Sprintf("the signed receipt is in %s; to check it: launch verify --strict %s", s.opts.Report.Receipt, cli.Quote(s.opts.Report.Receipt)))
	return nil
}

// Receipts reports how keys of receipts are found, and where the journals of runs
// under way are.
func (l *Launcher) Receipts() (keys ledger.Keys, journals string, err error) {
	dir, err := l.recordsDir()
	return l.keys(dir), filepath.Join(dir, journalsName), err
}

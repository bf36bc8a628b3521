package runner

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"egressd/internal/run"
	"egressd/internal/run/job"
	"egressd/internal/run/ledger"
	"egressd/internal/run/order"
	"egressd/internal/run/script"
	"egressd/internal/run/workspace/redact"
	"egressd/policy"
)

// Limits are what the operator of a runner says of every run.
type Limits struct {
	Inherit []string       // variables of the runner that contracts may ask for
	Ceiling *policy.Policy // besides the contract's; nil: none
}

// maxSecrets bounds what a job is told, in bytes.
const maxSecrets = 8 << 20

// Work is the process of one job: it reads its secrets from line, carries out the claim
// in dir, and ends the run early when line is closed, which the runner's death does.
func Work(ctx context.Context, l *run.Launcher, dir string, line io.Reader, limits Limits) error {
	in := bufio.NewReaderSize(io.LimitReader(line, maxSecrets), 64<<10)
	text, err := in.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("the runner did not say what to do: %w", err)
	}
	values := map[string]string{}
	if err := json.Unmarshal(text, &values); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		_, _ = io.Copy(io.Discard, line)
		cancel(&order.Failure{Class: order.SessionFailed, Message: "the runner ended"})
	}()
	if text, err = os.ReadFile(filepath.Join(dir, claimName)); err != nil {
		return err
	}
	c := new(claim)
	if err := json.Unmarshal(text, c); err != nil {
		return err
	}
	o, err := c.order()
	if err != nil {
		return err
	}
	key, again, err := ledger.Keys{Default: c.Key}.Open(ctx, c.Key)
	if err != nil {
		return err
	}
	config := job.Config{
		Launcher: l, Dir: dir, Journals: dir, Work: filepath.Join(c.Work, "work"), Order: o, Key: key, KeySpec: again, Ceiling: limits.Ceiling,
		Terms: order.Terms{
			Pool: c.Pool, Plane: c.Plane, Isolations: []string{run.TierProcess, script.Tier}, Inherit: limits.Inherit, Bounded: limits.Ceiling != nil, Now: time.Now(),
		},
	}
	for _, name := range order.Names(values) {
		config.Secrets = append(config.Secrets, redact.Secret{Name: name, Value: values[name]})
	}
	if config.Self, err = os.Executable(); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(dir, job.Bundle)); err == nil {
		return errors.New("this job has ended")
	}
	_, err = job.Run(ctx, config)
	return err
}

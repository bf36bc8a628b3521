// Package run runs one program behind the gate: from what the command line says to
// the program's exit code.
//
//	l := &run.Launcher{Program: program}
//	var o run.Options
//	if err := o.Parse(args); err != nil { ... }
//	if err := o.Validate(); err != nil { ... }
//	code := l.Run(&o)
//
// It joins a policy, a tier of package sandbox, a gate for the tier and the
// records of the run. Packages below it hold one mechanism of a run each.
package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync/atomic"

	"egressd/internal/cli"
	"egressd/internal/run/interrupt"
	"egressd/internal/run/ledger"
	"egressd/internal/run/project"
	"egressd/internal/run/script"
	"egressd/internal/run/secrets"
	"egressd/internal/run/trail"
	"egressd/policy"
	"egressd/sandbox"
	"egressd/sandbox/process"
	"egressd/sandbox/process/spawn"
	"egressd/sandbox/vercel/api"
)

// ExitLauncher is the exit code if launch itself failed to run a program, also by
// misuse. A program that ran gives its own, as with env(1).
const ExitLauncher = 125

// Launcher runs programs, one at a time.
type Launcher struct {
	*cli.Program

	// Init is an init that was started ahead. A run that it fits takes it. Nil:
	// there is none. The caller discards it.
	Init *spawn.Pending
}

// Run runs what valid Options say, records it and prints what a person should know.
// It reports the program's exit code, or ExitLauncher.
func (l *Launcher) Run(o *Options) int { return l.RunUntil(context.Background(), o) }

// RunUntil is Run, and ends the program with ctx.
func (l *Launcher) RunUntil(ctx context.Context, o *Options) int {
	s := &session{Launcher: l, opts: o}
	if err := s.prepare(); err != nil {
		return s.Fail(ExitLauncher, err)
	}
	s.keep.begin(s)
	code, runErr := s.execute(ctx)
	if runErr != nil {
		s.Fail(code, s.alreadyInside(runErr))
	}
	var out io.Writer
	if !o.Report.Quiet && !o.Report.NoSummary {
		out = s.Stderr
	}
	s.keep.endWatch(s)
	if err := errors.Join(s.daemon.close(), s.trail.Close(out, s.style()), s.endReceipt()); err != nil {
		s.Fail(ExitLauncher, err)
		if code == cli.ExitOK {
			code = ExitLauncher // the program did its part, but the record of it is not whole
		}
	}
	s.keep.end(s, code, runErr)
	return code
}

// session is one run and what belongs to it.
type session struct {
	*Launcher
	opts    *Options
	docs    []*policy.Document
	found   []*project.File // policy files that nobody named
	policy  *policy.Policy
	secrets secrets.Set
	trail   *trail.Trail
	ledger  *ledger.Ledger // of a run with a receipt, else nil
	daemon  daemon

	keep      keep        // for launch logs
	recording *recording  // of a run with a name, else nil
	layer     *layer      // of a run with an overlay in the process tier, else nil
	client    *api.Client // of a hosted run
	showing   atomic.Bool // progress stands on the terminal
}

// alreadyInside is err, with a word about where this process is if that explains it.
func (s *session) alreadyInside(err error) error {
	var lacks *sandbox.CapabilityError
	if s.Getenv(sandbox.Marker) == "" || !errors.As(err, &lacks) {
		return err
	}
	return fmt.Errorf("%w\n%s is set: this is inside a run of launch already, whose gate holds for all that it starts.\n"+
		"Run the program without launch; what it may reach, say outside: launch why HOST:PORT tells what to ask for", err, sandbox.Marker)
}

// inputs lists the policy files and their list files. Nobody else may write them.
func (s *session) inputs() []string {
	files := slices.Clone([]string(s.opts.Policy.Files))
	for _, f := range s.found {
		files = append(files, f.Path)
	}
	for _, d := range s.docs {
		files = append(files, d.ListFiles()...)
	}
	if u := s.policy.Upstream(); u != nil && u.CA != "" {
		files = append(files, u.CA)
	}
	return files
}

// prepare loads the policy and opens the record.
func (s *session) prepare() error {
	if err := s.readProxyVariables(); err != nil {
		return err
	}
	if err := s.findProject(); err != nil {
		return err
	}
	var err error
	if s.docs, err = s.opts.Policy.Documents(os.ReadFile); err != nil {
		return err
	}
	if s.policy, err = policy.Compile(s.docs...); err != nil {
		return err
	}
	if o := s.opts.Order; o != nil && o.Ceiling != nil {
		s.policy = s.policy.Under(o.Ceiling)
	}
	if err = s.opts.filesHeld(s.policy.FileRules()); err != nil {
		return err
	}
	if err = s.upstream(); err != nil {
		return err
	}
	if !s.opts.Report.Quiet {
		s.warn()
	}
	s.finishReceipts()
	if s.secrets, err = secrets.Find(s.policy, s.Getenv); err != nil {
		return err
	}
	c := trail.Config{Events: s.opts.Report.Events, Learn: s.opts.Report.Learn, Inputs: s.inputs(), Policy: s.policy, Stdout: s.Stdout, Found: foundLines(s.found)}
	if s.opts.Report.Notify {
		c.Notify = lines(s.Stderr)
	}
	if s.trail, err = trail.Open(c); err != nil {
		return err
	}
	return s.order(context.Background())
}

// execute runs the program and records it.
func (s *session) execute(ctx context.Context) (int, error) {
	ctx, arm, stop := interrupt.Second(ctx)
	defer stop()
	spec, backend, err := s.assemble()
	defer func() { _ = s.layer.end(false) }() // unless it was ended
	if err != nil {
		return ExitLauncher, err
	}
	spec.Forwarding = arm
	if err := s.trail.Started(backend.Isolation(), s.opts.limitsInForce(), spec.Argv); err != nil {
		return ExitLauncher, err
	}
	rec, err := s.record(&spec)
	if err != nil {
		return ExitLauncher, err
	}
	res := sandbox.Result{ExitCode: ExitLauncher}
	if err = backend.Supports(spec); err == nil {
		res, err = backend.Run(ctx, spec)
		s.clearLine()
	}
	err = errors.Join(err, s.layer.end(err == nil || errors.Is(err, process.ErrReplaced)))
	s.layer = nil
	if err != nil && res.ExitCode == cli.ExitOK {
		res.ExitCode = ExitLauncher
	}
	err = errors.Join(err, rec.end(res, err))
	if res.TimedOut {
		what := "the program and all that it started were ended"
		if s.opts.Tier == script.Tier {
			what = "the script was ended"
		}
		s.Say("launch: the time limit of %v is over: %s\n", spec.Timeout, what)
	}
	for _, name := range res.Met {
		s.Say("launch: %s\n", s.opts.Program.Limits.InForce().Met(name))
	}
	s.trail.Met(res.Met)
	return res.ExitCode, errors.Join(err, s.trail.Ended(res.ExitCode, res.Ended.Sub(res.Started), err))
}

package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"egressd/dnsfilter"
	"egressd/event"
	"egressd/internal/approve"
	"egressd/internal/learn"
	"egressd/internal/summary"
	"egressd/policy"
	"egressd/sandbox"
	"egressd/sandbox/process"
)

// session is one run and what belongs to it.
type session struct {
	*launcher
	opts    options
	id      string
	policy  *policy.Policy
	secrets map[string]secret
	totals  summary.Collector
	learned learn.Recorder
	sinks   event.Fanout
	protect []string
	closers []io.Closer // in the order to close
}

// runProgram is the main job: launch [flags] -- program.
func (l *launcher) runProgram(args []string) int {
	s := &session{launcher: l, id: rand.Text()[:16]}
	fs := s.opts.flags()
	fs.SetOutput(io.Discard)
	fs.Usage = func() {}
	if err := fs.Parse(args); errors.Is(err, flag.ErrHelp) {
		return l.print(longHelp)
	} else if err != nil {
		return l.usage(exitLauncher, err)
	}
	s.opts.argv = fs.Args()
	if len(s.opts.argv) == len(args) {
		return l.usage(exitLauncher, fmt.Errorf("%q is no command of launch: to run a program, write launch -- %s", args[0], summary.Safe(args[0])))
	}
	if err := s.opts.validate(); err != nil {
		return l.usage(exitLauncher, err)
	}
	return s.run()
}

// run prepares, runs the program, and ends the session whatever happened.
func (s *session) run() int {
	if err := s.prepare(); err != nil {
		return s.fail(exitLauncher, errors.Join(err, s.close()))
	}
	code := exitLauncher
	spec, backend, err := s.assemble()
	if err == nil {
		code, err = s.execute(backend, spec)
	}
	if err != nil {
		code = s.fail(code, err)
	}
	if err := s.finish(); err != nil {
		s.fail(exitLauncher, err)
		if code == exitOK {
			code = exitLauncher // the program did its part, the record of it is not whole
		}
	}
	return code
}

// prepare loads the policy and opens the event sinks.
func (s *session) prepare() error {
	var err error
	if s.policy, err = s.opts.gate.Load(os.ReadFile); err != nil {
		return err
	}
	s.protect = append(s.protect, s.opts.gate.Files...)
	if s.secrets, err = findSecrets(s.policy, s.environ); err != nil {
		return err
	}
	if err := s.openEvents(); err != nil {
		return err
	}
	if s.opts.learn != "" {
		if _, err := os.Lstat(s.opts.learn); err == nil {
			return fmt.Errorf("--learn %s exists already: remove it, or name another file", s.opts.learn)
		}
		s.sinks = append(s.sinks, &s.learned)
	}
	s.sinks = append(s.sinks, &s.totals)
	return nil
}

func (s *session) openEvents() error {
	if s.opts.events == "" {
		return nil
	}
	out := s.stdout
	if s.opts.events != "-" {
		f, err := event.Open(s.opts.events)
		if err != nil {
			return err
		}
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
			s.protect = append(s.protect, s.opts.events)
		}
		out = f
	}
	w := &event.Writer{W: out}
	s.sinks = append(s.sinks, w)
	s.closers = append(s.closers, w)
	if out != s.stdout {
		s.closers = append(s.closers, out)
	}
	return nil
}

// resolver finds names after the verdict: flags, then the policy, then the
// host's resolv.conf.
func (s *session) resolver(log *slog.Logger) (*dnsfilter.Resolver, error) {
	r := &dnsfilter.Resolver{Log: log}
	texts := []string(s.opts.upstreams)
	if len(texts) == 0 {
		for _, e := range s.policy.DNS().Upstreams {
			texts = append(texts, e.Text)
		}
	}
	for _, list := range texts {
		for _, text := range strings.Split(list, ",") {
			u, err := dnsfilter.ParseUpstream(strings.TrimSpace(text))
			if err != nil {
				return nil, fmt.Errorf("--dns-upstream: %w", err)
			}
			r.Upstreams = append(r.Upstreams, u)
		}
	}
	if len(texts) > 0 {
		return r, nil
	}
	data, err := os.ReadFile("/etc/resolv.conf")
	if errors.Is(err, os.ErrNotExist) {
		return r, nil // names in --host still work; others fail, with their reason
	} else if err != nil {
		return nil, fmt.Errorf("resolvers: %w", err)
	}
	r.Upstreams, err = dnsfilter.SystemUpstreams(data)
	return r, err
}

// assemble builds the spec and the backend of the run.
func (s *session) assemble() (sandbox.Spec, sandbox.Backend, error) {
	cred, who, err := runAs(s.opts.user, s.environ)
	if err != nil {
		return sandbox.Spec{}, nil, err
	}
	named := append(append(who, s.opts.env...), placeholders(s.secrets)...)
	env, err := sandbox.Env(s.environ, s.opts.argv, named)
	if err != nil {
		return sandbox.Spec{}, nil, fmt.Errorf("--env: %w", err)
	}
	spec := sandbox.Spec{
		Argv: s.opts.argv, Dir: s.opts.workdir, Env: env, Timeout: s.opts.timeout,
		Stdin: s.stdin, Stdout: s.stdout, Stderr: s.stderr,
	}
	log := slog.New(slog.DiscardHandler)
	if !s.opts.quiet {
		log = slog.New(slog.NewTextHandler(s.stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	}
	res, err := s.resolver(log)
	if err != nil {
		return spec, nil, err
	}
	var ask func(context.Context, policy.Request, policy.Decision) bool
	if s.opts.approve {
		ask = (&approve.Terminal{Path: "/dev/tty"}).Ask
	}
	current := new(policy.Current)
	current.Store(s.policy)
	if s.opts.isolation == "env" {
		return spec, &process.Advisory{
			Policy: current, Resolver: res, Events: s.sinks, Log: log, Session: s.id,
			Ask: ask, SecretValue: s.secretValue,
		}, nil
	}
	return spec, &process.Backend{
		Policy: current, Resolver: res, Events: s.sinks, Log: log, Session: s.id,
		Ask: ask, Publish: s.opts.publish, HostPorts: s.opts.hostPorts, Protect: s.protect,
		SecretValue: s.secretValue, RunAs: cred,
	}, nil
}

// execute runs spec and records that it ran.
func (s *session) execute(b sandbox.Backend, spec sandbox.Spec) (int, error) {
	if err := b.Supports(spec); err != nil {
		return exitLauncher, errors.Join(err, s.record(b, event.Event{Type: event.RunFailed, Error: err.Error()}))
	}
	// A closed pipe must not end launch before it has written its events. Caught,
	// not ignored: an ignored signal would stay ignored in the program.
	pipes := make(chan os.Signal, 1)
	signal.Notify(pipes, syscall.SIGPIPE)
	defer signal.Stop(pipes)

	sum := sha256.Sum256([]byte(strings.Join(spec.Argv, "\x00")))
	start := event.Event{Type: event.CommandExecuted, ArgvHash: hex.EncodeToString(sum[:])}
	if err := s.record(b, start); err != nil {
		return exitLauncher, err
	}
	res, err := b.Run(context.Background(), spec)
	end := event.Event{Type: event.RunCompleted, ExitCode: &res.ExitCode}
	if err != nil {
		end.Type, end.Error = event.RunFailed, err.Error()
	}
	if !res.Started.IsZero() && !res.Ended.IsZero() {
		end.DurationMS = res.Ended.Sub(res.Started).Milliseconds()
	}
	if err != nil && res.ExitCode == 0 {
		res.ExitCode = exitLauncher
	}
	return res.ExitCode, errors.Join(err, s.record(b, end))
}

// record emits an event about the run itself.
func (s *session) record(b sandbox.Backend, e event.Event) error {
	e.Session, e.Isolation, e.Policy = s.id, b.Isolation(), s.policy.Digest()
	return s.sinks.Emit(e)
}

// finish closes the events, writes what was learned, and prints the summary.
func (s *session) finish() error {
	errs := []error{s.close()}
	if s.opts.learn != "" {
		errs = append(errs, s.learned.WriteFile(s.opts.learn))
	}
	if !s.opts.quiet && !s.opts.noSummary {
		errs = append(errs, s.totals.Write(s.stderr))
	}
	return errors.Join(errs...)
}

func (s *session) close() error {
	var errs []error
	for _, c := range s.closers {
		errs = append(errs, c.Close())
	}
	s.closers = nil
	return errors.Join(errs...)
}

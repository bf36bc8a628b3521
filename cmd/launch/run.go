package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"

	"egressd/cmd/launch/ahead"
	"egressd/dnsfilter"
	"egressd/gate"
	"egressd/internal/cli"
	"egressd/internal/run/approve"
	"egressd/internal/run/interrupt"
	"egressd/internal/run/runas"
	"egressd/internal/run/secrets"
	"egressd/internal/run/summary"
	"egressd/internal/run/trail"
	"egressd/policy"
	"egressd/sandbox"
	"egressd/sandbox/advisory"
	"egressd/sandbox/process"
	"egressd/sandbox/vercel/api"
)

// session is one run and what belongs to it.
type session struct {
	*launcher
	opts    options
	docs    []*policy.Document
	policy  *policy.Policy
	secrets secrets.Set
	trail   *trail.Trail
	remote  remote

	recording *recording  // of a run with a name
	client    *api.Client // of a hosted run
	showing   atomic.Bool // progress stands on the terminal
}

// runProgram is the main job: launch [flags] -- program.
func (l *launcher) runProgram(args []string) int {
	defer ahead.Init().Discard() // unless the run has taken it
	s := &session{launcher: l}
	fs := s.opts.flags()
	fs.SetOutput(io.Discard)
	fs.Usage = func() {}
	if err := fs.Parse(args); errors.Is(err, flag.ErrHelp) {
		return l.Print(longHelp)
	} else if err != nil {
		return l.misused(err)
	}
	s.opts.argv = fs.Args()
	s.opts.keeping.raw = args[:len(args)-len(s.opts.argv)]
	fs.Visit(func(f *flag.Flag) { s.opts.given = append(s.opts.given, f.Name) })
	if len(s.opts.argv) == len(args) {
		word := summary.Safe(args[0])
		return l.misused(fmt.Errorf("%q is no command of launch: to run a program, write launch -- %s", word, word))
	}
	if err := s.opts.validate(); err != nil {
		return l.misused(err)
	}
	return s.run()
}

// run prepares, runs the program, and ends the record whatever happened.
func (s *session) run() int {
	if err := s.prepare(); err != nil {
		return s.Fail(exitLauncher, err)
	}
	code, err := s.execute()
	if err != nil {
		s.Fail(code, err)
	}
	var out io.Writer
	if !s.opts.quiet && !s.opts.noSummary {
		out = s.Stderr
	}
	if err := errors.Join(s.remote.close(), s.trail.Close(out)); err != nil {
		s.Fail(exitLauncher, err)
		if code == cli.ExitOK {
			code = exitLauncher // the program did its part, but the record of it is not whole
		}
	}
	return code
}

// prepare loads the policy and opens the record.
func (s *session) prepare() error {
	var err error
	if s.docs, err = s.opts.gate.Documents(os.ReadFile); err != nil {
		return err
	}
	if s.policy, err = policy.Compile(s.docs...); err != nil {
		return err
	}
	if s.secrets, err = secrets.Find(s.policy, s.Getenv); err != nil {
		return err
	}
	s.trail, err = trail.Open(trail.Config{
		Events: s.opts.events, Learn: s.opts.learn, Inputs: s.opts.gate.Files, Policy: s.policy, Stdout: s.Stdout,
	})
	return err
}

// execute runs the program and records it.
func (s *session) execute() (int, error) {
	ctx, arm, stop := interrupt.Second(context.Background())
	defer stop()
	spec, backend, err := s.assemble()
	if err != nil {
		return exitLauncher, err
	}
	spec.Forwarding = arm
	if err := s.trail.Started(backend.Isolation(), spec.Argv); err != nil {
		return exitLauncher, err
	}
	rec, err := s.record(&spec)
	if err != nil {
		return exitLauncher, err
	}
	res := sandbox.Result{ExitCode: exitLauncher}
	if err = backend.Supports(spec); err == nil {
		res, err = backend.Run(ctx, spec)
		s.clearLine()
	}
	if err != nil && res.ExitCode == cli.ExitOK {
		res.ExitCode = exitLauncher
	}
	err = errors.Join(err, rec.end(res, err))
	if res.TimedOut {
		what := "the program and all that it started were ended"
		if s.opts.tier == tierHermetic {
			what = "the script was ended"
		}
		s.Say("launch: the time limit of %v is over: %s\n", spec.Timeout, what)
	}
	return res.ExitCode, errors.Join(err, s.trail.Ended(res.ExitCode, res.Ended.Sub(res.Started), err))
}

// assemble builds what runs and what it runs in.
func (s *session) assemble() (sandbox.Spec, sandbox.Backend, error) {
	spec := sandbox.Spec{
		Argv: s.opts.argv, Dir: s.opts.workdir, Timeout: s.opts.timeout,
		Stdin: s.Stdin, Stdout: s.Stdout, Stderr: s.Stderr,
	}
	log := slog.New(slog.DiscardHandler)
	if !s.opts.quiet {
		log = slog.New(slog.NewTextHandler(s.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	}
	if s.opts.tier == tierVercel {
		b, err := s.vercel(&spec, log)
		return spec, b, err
	}
	user, err := runas.Find(s.opts.user, s.Getenv("SUDO_UID"), os.Geteuid())
	if err != nil {
		return spec, nil, err
	}
	var named []string
	if user != nil {
		spec.RunAs = &sandbox.Cred{UID: user.UID, GID: user.GID, Groups: user.Groups}
		named = user.Env
	}
	spec.Protect = append(s.trail.Protect(), s.opts.gate.Files...)
	named = append(append(named, s.opts.env...), s.secrets.Env()...)
	if spec.Env, err = sandbox.Env(s.Environ, s.opts.argv, named); err != nil {
		return spec, nil, fmt.Errorf("--env: %w", err)
	}
	who := s.asker()
	g, err := s.gate(who, log)
	if err != nil {
		return spec, nil, err
	}
	if s.opts.tier == tierHermetic {
		b, err := s.hermetic(&spec, g)
		return spec, b, err
	}
	s.hint(spec)
	if s.opts.isolation == "env" {
		return spec, &advisory.Backend{Gate: g}, nil
	}
	b := &process.Backend{
		Gate: g, Publish: s.opts.publish, HostPorts: s.opts.hostPorts,
		Nested: s.opts.nested || sandbox.AgentNests(s.opts.argv), Early: ahead.Init(),
	}
	if who != nil {
		b.Asking = who.Asking
	}
	if s.opts.egressd != "" {
		b.DoorServer = func(ctx context.Context, own []netip.AddrPort) (process.DoorServer, error) {
			return s.handOver(ctx, own, b)
		}
	}
	return spec, b, nil
}

// gate is what judges and records the run's flows, whatever runs them. who is
// asked about what no rule covers; nil: nobody.
func (s *session) gate(who *approve.Terminal, log *slog.Logger) (gate.Config, error) {
	resolver, err := s.resolver(log)
	if err != nil {
		return gate.Config{}, err
	}
	g := gate.Config{
		Policy: new(policy.Current), Resolver: resolver, Events: s.trail.Sink(), Log: log,
		Identity:     gate.Identity{Session: s.trail.Session},
		Interception: gate.Interception{SecretValue: s.secrets.Value},
	}
	g.Policy.Store(s.policy)
	if who != nil {
		g.Ask = who.Ask
	}
	return g, nil
}

// hint tells where an agent that a shell or a script will start lacks its key,
// which would show only as the agent's own "not logged in".
func (s *session) hint(spec sandbox.Spec) {
	name, keys := sandbox.MissingAgentKeys(s.Environ, spec.Argv, spec.Env)
	if len(keys) == 0 || s.opts.quiet {
		return
	}
	s.Say("launch: %s is set here and not passed in; if %s needs it, add: --env %s\n",
		strings.Join(keys, ", "), summary.Safe(name), strings.Join(keys, " --env "))
}

// asker is the person who is asked about what no rule covers; nil without
// --approve.
func (s *session) asker() *approve.Terminal {
	const tty = "/dev/tty"
	if !s.opts.approve {
		return nil
	}
	if err := approve.Available(tty); err != nil {
		s.Say("launch: --approve: %v: what no rule covers is denied\n", err)
	}
	// Only the process tier leaves a stopped program alone while a question stands.
	return &approve.Terminal{Path: tty, Freeze: s.opts.isolation == "netns" && s.opts.tier != tierHermetic}
}

// resolver looks names up after the verdict, with the servers of the policy,
// else of the host.
func (s *session) resolver(log *slog.Logger) (*dnsfilter.Resolver, error) {
	servers, err := dnsfilter.PolicyUpstreams(s.policy)
	if err == nil && len(servers) == 0 {
		servers, err = hostUpstreams()
	}
	return &dnsfilter.Resolver{Upstreams: servers, Log: log}, err
}

// hostUpstreams reads the DNS servers of this machine. Without a resolv.conf
// there are none: names in --host still work; others fail, with their reason.
func hostUpstreams() ([]dnsfilter.Upstream, error) {
	data, err := os.ReadFile("/etc/resolv.conf")
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("DNS servers of this machine: %w", err)
	}
	return dnsfilter.SystemUpstreams(data)
}

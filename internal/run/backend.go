package run

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"slices"
	"strings"

	"egressd/dnsfilter"
	"egressd/gate"
	"egressd/internal/cli"
	"egressd/internal/run/approve"
	"egressd/internal/run/microvm"
	"egressd/internal/run/place"
	"egressd/internal/run/runas"
	"egressd/internal/run/script"
	"egressd/policy"
	"egressd/policy/files"
	"egressd/sandbox"
	"egressd/sandbox/advisory"
	"egressd/sandbox/hermetic"
	"egressd/sandbox/process"
)

// assemble builds what runs and what it runs in.
func (s *session) assemble() (sandbox.Spec, sandbox.Backend, error) {
	o := s.opts
	spec := sandbox.Spec{
		Argv: o.Argv, Dir: o.Program.Dir, Timeout: o.Program.Timeout,
		Stdin: s.Stdin, Stdout: s.Stdout, Stderr: s.Stderr,
	}
	if o.Order != nil {
		spec.Stdin, spec.Stdout, spec.Stderr = nil, o.Order.Output, o.Order.Output
	}
	log := slog.New(slog.DiscardHandler)
	if !o.Report.Quiet {
		log = slog.New(slog.NewTextHandler(lines(s.Stderr), &slog.HandlerOptions{Level: slog.LevelWarn}))
	}
	if err := s.separate(&spec); err != nil {
		return spec, nil, err
	}
	if o.Tier == microvm.Tier {
		b, err := s.microVM(&spec, log)
		return spec, b, err
	}
	if err := s.here(&spec); err != nil {
		return spec, nil, err
	}
	person := s.asker()
	g, err := s.gate(person, log)
	if err != nil {
		return spec, nil, err
	}
	if o.Tier == script.Tier {
		b, err := s.hermetic(&spec, g)
		return spec, b, err
	}
	s.hint(spec)
	if o.Isolation == isolationEnv {
		s.carryAuthorities(&spec, nil)
		return spec, &advisory.Backend{Gate: g}, nil
	}
	if spec.Files, err = s.files(spec); err != nil {
		return spec, nil, err
	}
	s.carryAuthorities(&spec, spec.Files)
	b := &process.Backend{
		Gate: g, Publish: o.Program.Publish, HostPorts: o.Program.HostPorts,
		Limits: o.Program.Limits, Nested: o.Program.Nested || sandbox.AgentNests(o.Argv), Learn: o.Report.Learn != "", Early: s.Init,
	}
	if b.Outside, err = s.outside(); err != nil {
		return spec, nil, err
	}
	if b.Outside.Overlay, err = s.makeLayer(spec); err != nil {
		return spec, nil, err
	}
	if person != nil {
		person.Hold = b.Hold
	}
	if o.Daemon != "" {
		b.DoorServer = func(ctx context.Context, own []netip.AddrPort) (process.DoorServer, error) {
			return s.handOver(ctx, own, b)
		}
	}
	return spec, b, nil
}

// here completes spec for a tier of this machine: user, protected files and
// environment.
func (s *session) here(spec *sandbox.Spec) error {
	user, err := runas.Find(s.opts.Program.User, s.Getenv("SUDO_UID"), os.Geteuid())
	if err != nil {
		return err
	}
	var named []string
	if user != nil {
		spec.RunAs = &sandbox.Cred{UID: user.UID, GID: user.GID, Groups: user.Groups}
		named = user.Env
	}
	spec.Protect = append(s.trail.Protect(), s.inputs()...)
	named = append(append(named, s.opts.Program.Env...), s.secrets.Env()...)
	if spec.Env, err = sandbox.Env(s.Environ, s.opts.Argv, named); err != nil {
		return fmt.Errorf("--env: %w", err)
	}
	return nil
}

// files applies the files section of the policy to this machine and this program.
func (s *session) files(spec sandbox.Spec) (*files.Gate, error) {
	at, err := place.Find(place.Run{Dir: spec.Dir, Env: spec.Env, Argv: spec.Argv, StateHome: s.Getenv("XDG_STATE_HOME")})
	if err != nil {
		return nil, err
	}
	login, err := s.login()
	if err != nil {
		return nil, err
	}
	if login != "" {
		at.Secret = append(at.Secret, login)
	}
	return s.policy.Files(at)
}

// gate is what judges and records the run's flows, in whatever tier. person is
// asked about what no rule covers; nil: nobody.
func (s *session) gate(person *approve.Terminal, log *slog.Logger) (gate.Config, error) {
	resolver, err := s.resolver(log)
	if err != nil {
		return gate.Config{}, err
	}
	authorities := s.authorities()
	g := gate.Config{
		Policy: new(policy.Current), Resolver: resolver, Events: s.trail.Sink(), Log: log,
		Authorities:  authorities,
		Upstream:     gate.Upstream(s.opts.Policy.Environ.Login, authorities),
		Identity:     gate.Identity{Session: s.trail.Session},
		Interception: gate.Interception{SecretValue: s.secrets.Value},
	}
	g.Policy.Store(s.policy)
	if person != nil {
		g.Ask = person.Ask
	}
	return g, nil
}

// hermetic builds the backend of the hermetic tier, and completes spec for it.
func (s *session) hermetic(spec *sandbox.Spec, g gate.Config) (*hermetic.Backend, error) {
	argv, err := s.opts.Script.Argv(s.opts.Argv, s.Stdin)
	if err != nil {
		return nil, err
	}
	spec.Argv = argv
	records, err := s.hideRecords()
	if err != nil {
		return nil, err
	}
	spec.Protect = append(spec.Protect, records...)
	if s.opts.Script.File == "-" {
		spec.Stdin = nil // it was the script
	}
	spec.Env = hermetic.Env(spec.Env, append(slices.Clone([]string(s.opts.Program.Env)), s.secrets.Env()...))
	b := &hermetic.Backend{Gate: g, Limits: s.opts.Script.Limits, Overlay: s.opts.Script.Overlay, Changed: s.keptOut}
	spec.Notes = func(line string) { s.Say("launch: %s\n", cli.Safe(line)) }
	if s.Getenv("LAUNCH_TRACE") != "" {
		b.Trace = s.Stderr
	}
	return b, nil
}

// hint names the keys of an agent that a shell or a script will start, and of a tool
// that logs in with variables, if they are set here and not passed in. The program
// itself would say only "not logged in".
func (s *session) hint(spec sandbox.Spec) {
	if s.opts.Report.Quiet {
		return
	}
	name, keys := sandbox.MissingAgentKeys(s.Environ, spec.Argv, spec.Env)
	all := sandbox.MissingCredentials(s.Environ, spec.Argv, spec.Env)
	if len(keys) > 0 {
		all = append([]sandbox.Missing{{Program: name, Vars: keys}}, all...)
	}
	for _, m := range all {
		verb, it := "is", "it"
		if len(m.Vars) > 1 {
			verb, it = "are", "them"
		}
		s.Say("launch: %s %s set here and not passed in; if %s needs %s, add: --env %s\n",
			strings.Join(m.Vars, ", "), verb, cli.Safe(m.Program), it, strings.Join(m.Vars, " --env "))
	}
}

// asker is the person who is asked about what no rule covers; nil without
// --approve.
func (s *session) asker() *approve.Terminal {
	const tty = "/dev/tty"
	if !s.opts.Report.Approve {
		return nil
	}
	if err := approve.Available(tty); err != nil {
		s.Say("launch: --approve: %v: what no rule covers is denied\n", err)
	}
	t := &approve.Terminal{Path: tty}
	if t.SaveTo = s.savesTo(); t.SaveTo != "" {
		t.Save = func(rule string) error { return s.Trusted().Allow(t.SaveTo, rule) }
	}
	return t
}

// resolver resolves names after the verdict, with the DNS servers of the policy, or
// those of this machine if the policy names none.
func (s *session) resolver(log *slog.Logger) (*dnsfilter.Resolver, error) {
	servers, err := dnsfilter.PolicyUpstreams(s.policy)
	if err == nil && len(servers) == 0 {
		servers, err = HostUpstreams()
	}
	return &dnsfilter.Resolver{Upstreams: servers, Log: log}, err
}

// HostUpstreams reads the DNS servers of this machine. Without a resolv.conf there
// are none: names in --host still work, and others fail with that reason.
func HostUpstreams() ([]dnsfilter.Upstream, error) {
	data, err := os.ReadFile("/etc/resolv.conf")
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("DNS servers of this machine: %w", err)
	}
	return dnsfilter.SystemUpstreams(data)
}

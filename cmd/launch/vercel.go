package main

import (
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/term"

	"egressd/internal/cli"
	"egressd/internal/run/records"
	"egressd/sandbox"
	"egressd/sandbox/vercel"
	"egressd/sandbox/vercel/api"
	"egressd/sandbox/vercel/api/account"
	"egressd/sandbox/vercel/network"
)

const tierVercel = "vercel"

// hosted is what the command line says for the Vercel tier alone.
type hosted struct {
	vercel.Options
	source string

	team, project, tokenFile string
}

// register defines the tier's flags.
func (h *hosted) register(fs *flag.FlagSet) {
	fs.BoolVar(&h.Keep, "keep", false, "vercel tier, with --name: leave the sandbox running")
	fs.StringVar(&h.Task, "task", "", "vercel tier: go on from the snapshot of this task `ID`, and leave one for the next run")
	fs.StringVar(&h.Runtime, "runtime", "", "vercel tier: a `NAME` such as node24 or python3.13")
	fs.StringVar(&h.Image, "image", "", "vercel tier: an image `NAME`, instead of a runtime")
	fs.Func("vcpus", "vercel tier: this `NUMBER` of processors, 1 or even; 2 GB of memory each", h.setVCPUs)
	fs.Func("port", "vercel tier: publish this `PORT` to everybody", h.setPort)
	fs.Func("tag", "vercel tier: mark the sandbox: `NAME=VALUE`", h.setTag)
	fs.StringVar(&h.Workdir, "vercel-workdir", "", "vercel tier: put the workspace into this absolute `DIR` of the VM")
	fs.StringVar(&h.source, "source", "", "vercel tier: begin with `SOURCE`: git:URL[#REVISION], tarball:URL or snapshot:ID")
	fs.BoolVar(&h.All, "send-ignored", false, "vercel tier: send also files that .gitignore names")
	fs.StringVar(&h.team, "vercel-team", "", "vercel tier: team `ID` (else VERCEL_TEAM_ID)")
	fs.StringVar(&h.project, "vercel-project", "", "vercel tier: project `ID` (else VERCEL_PROJECT_ID)")
	fs.StringVar(&h.tokenFile, "vercel-token-file", "", "vercel tier: read the token from this `FILE` (else VERCEL_TOKEN or VERCEL_OIDC_TOKEN)")
}

// hostedFlags are the names of those flags.
func hostedFlags() []string {
	fs := flag.NewFlagSet("", flag.ContinueOnError)
	new(hosted).register(fs)
	var names []string
	fs.VisitAll(func(f *flag.Flag) { names = append(names, f.Name) })
	return names
}

func (h *hosted) setVCPUs(s string) error {
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > 1 && n%2 != 0 {
		return fmt.Errorf("%q: 1, or an even number", s)
	}
	h.VCPUs = n
	return nil
}

func (h *hosted) setPort(s string) error {
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil || n < 1024 {
		return fmt.Errorf("%q: a port from 1024 to 65535", s)
	}
	h.Ports = append(h.Ports, int(n))
	return nil
}

func (h *hosted) setTag(s string) error {
	name, value, ok := strings.Cut(s, "=")
	if !ok || name == "" {
		return fmt.Errorf("%q: write NAME=VALUE", s)
	}
	if h.Tags == nil {
		h.Tags = map[string]string{}
	}
	h.Tags[name] = value
	return nil
}

// validateVercel refuses what has no meaning on another machine.
func (o *options) validateVercel() error {
	for _, f := range []struct{ name, why string }{
		{"isolation", "the microVM is an isolation of its own"},
		{"publish", "use --port"},
		{"host-port", "the VM cannot reach this machine"},
		{"nested", "the VM is its own"},
		{"egressd", "Vercel enforces the policy"},
		{"user", "the VM has users of its own"},
		{"approve", "Vercel does not ask"},
		{"learn", "Vercel does not tell what was denied"},
	} {
		if slices.Contains(o.given, f.name) {
			return fmt.Errorf("--%s has no use with --tier vercel: %s", f.name, f.why)
		}
	}
	h := &o.hosted
	switch {
	case o.scripts.flag() != "":
		return fmt.Errorf("%s is for --tier hermetic", o.scripts.flag())
	case h.Runtime != "" && h.Image != "":
		return errors.New("--runtime and --image are two ways to say the same: give one")
	case h.Keep && o.keeping.name == "":
		return errors.New("--keep needs a --name to find the sandbox again")
	case strings.Contains(o.keeping.name, "."):
		return fmt.Errorf("--name %q: Vercel takes letters, digits, - and _", o.keeping.name)
	case h.Task != "" && records.ValidName(h.Task) != "":
		return fmt.Errorf("--task %q: %s", h.Task, records.ValidName(h.Task))
	case len(o.argv) == 0:
		return errors.New("no program given: launch [flags] -- PROGRAM [ARGUMENT...]")
	}
	var err error
	h.Source, err = parseSource(h.source)
	h.Name = o.keeping.name
	return err
}

// parseSource reads --source.
func parseSource(s string) (*api.Source, error) {
	if s == "" {
		return nil, nil
	}
	kind, rest, _ := strings.Cut(s, ":")
	switch kind {
	case "snapshot":
		if rest != "" {
			return &api.Source{Type: "snapshot", SnapshotID: rest}, nil
		}
	case "git", "tarball":
		u, err := url.Parse(rest)
		if err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" {
			src := &api.Source{Type: kind}
			if kind == "git" {
				src.Revision, u.Fragment = u.Fragment, ""
			}
			if u.User != nil {
				return nil, fmt.Errorf("--source %s: a password on a command line is for everybody to read; publish the source, or send it as the workspace", kind)
			}
			src.URL = u.String()
			return src, nil
		}
	}
	return nil, fmt.Errorf("--source %q: write git:https://HOST/PATH[#REVISION], tarball:https://HOST/PATH or snapshot:ID", s)
}

// vercelClient finds the credentials.
//
// Threat: the token ends on a command line, in a record or in the sandbox -> it
// comes from the environment or a file, goes into one header of requests to the
// service, and into nothing else: the environment of the program is built
// without it. Left over: somebody who names it with --env.
func (l *launcher) vercelClient(h *hosted, log *slog.Logger) (*api.Client, error) {
	from := account.Sources{
		TeamID: h.team, ProjectID: h.project,
		EnvToken: l.Getenv("VERCEL_TOKEN"), EnvTeamID: l.Getenv("VERCEL_TEAM_ID"), EnvProjectID: l.Getenv("VERCEL_PROJECT_ID"),
		EnvOIDCToken: l.Getenv("VERCEL_OIDC_TOKEN"),
	}
	if h.tokenFile != "" {
		text, err := os.ReadFile(h.tokenFile)
		if err != nil {
			return nil, fmt.Errorf("--vercel-token-file: %w", err)
		}
		from.Token = strings.TrimSpace(string(text))
	}
	who, err := from.Resolve(time.Now())
	if err != nil {
		return nil, &sandbox.CapabilityError{Isolation: network.Isolation, What: err.Error(), Fix: "set it, or use --vercel-token-file, --vercel-team and --vercel-project"}
	}
	return &api.Client{
		BaseURL: l.Getenv("VERCEL_SANDBOX_API_URL"), Token: who.Token, TeamID: who.TeamID, ProjectID: who.ProjectID, Expires: who.Expires,
		UserAgent: "egressd/" + cli.Version(), Log: log,
	}, nil
}

// vercel builds the backend of a run in a hosted microVM.
func (s *session) vercel(spec *sandbox.Spec, log *slog.Logger) (*vercel.Backend, error) {
	n, err := network.Translate(s.policy, func(env string) (string, bool) {
		_, value, ok := s.secrets.Value(env)
		return value, ok
	})
	if err != nil {
		return nil, err
	}
	named := append(slices.Clone([]string(s.opts.env)), s.secrets.Env()...)
	if spec.Env, err = sandbox.RemoteEnv(s.Environ, s.opts.argv, named); err != nil {
		return nil, fmt.Errorf("--env: %w", err)
	}
	client, err := s.vercelClient(&s.opts.hosted, log)
	if err != nil {
		return nil, err
	}
	client.Redact = redactor(n, spec.Env)
	b := &vercel.Backend{
		Client: client, Network: n, Events: s.trail.Sink(), Log: log, Session: s.trail.Session, Options: s.opts.hosted.Options,
		Changed: s.cameBack, Located: s.located, Left: s.left,
	}
	s.client, spec.Notes = client, s.note
	if !s.opts.quiet && term.IsTerminal(int(s.Stderr.Fd())) {
		b.Progress = s.progress()
	}
	store, err := s.store()
	switch {
	case err == nil:
		b.Tasks = tasks{store}
		place := records.Place{Sandbox: b.Name, Task: b.Task, Where: client.TeamID + "/" + client.ProjectID}
		b.Synced = synced{store, place}
		b.Shared = func() bool { return s.shared(store) }
		b.Known = func(workspace string) map[string][sha256.Size]byte {
			known, err := store.Returned(workspace)
			if err != nil {
				s.note("what earlier runs left here is not known: " + err.Error())
			}
			return known
		}
		b.Changed = func(c vercel.Changes) {
			s.cameBack(c)
			if err := store.AddReturned(c.Workspace, c.Sums); err != nil {
				s.note("what came back is not remembered: " + err.Error())
			}
		}
	case b.Task != "":
		return nil, err
	}
	for _, note := range n.Notes {
		s.note(note)
	}
	if here, err := os.Getwd(); err == nil && here == filepath.Clean(s.Getenv("HOME")) {
		s.note("the workspace is your home directory: all of it is sent, keys too, but for what .gitignore names")
	}
	return b, nil
}

// note tells a person something about the run.
func (s *session) note(text string) {
	s.clearLine()
	if !s.opts.quiet {
		s.Say("launch: %s\n", text)
	}
}

// clearLine takes the progress off the terminal.
func (s *session) clearLine() {
	if s.showing.Swap(false) {
		s.Say("\r\x1b[K")
	}
}

// synced is what launch remembers of one place.
type synced struct {
	store *records.Store
	place records.Place
}

func (y synced) Load(workspace string) (string, map[string]string, error) {
	return y.store.Synced(y.place, workspace)
}

func (y synced) Save(workspace, stamp string, marks map[string]string) error {
	return y.store.SetSynced(y.place, workspace, stamp, marks)
}

// shared reports whether another launch runs something in this run's sandbox,
// which this run is about to leave.
func (s *session) shared(store *records.Store) bool {
	if s.recording == nil {
		return false
	}
	last, err := store.MarkLeaving(s.opts.keeping.name, s.recording.rec.Process().ID)
	if err != nil {
		s.note("what else runs in the sandbox is not known: " + err.Error())
	}
	return err == nil && !last
}

// redactor takes the values that a run sends out of what the service says.
//
// Threat: the service repeats a request's words in its error, and a secret ends
// on the terminal, in events and in records -> the headers that the policy binds
// to hosts and the values of variables are taken out. Left over: values that are
// too short to be secrets, and those that come back in another spelling.
func redactor(n *network.Network, env []string) func(string) string {
	const least = 6
	var pairs []string
	add := func(v, name string) {
		if len(v) >= least {
			pairs = append(pairs, v, name)
		}
	}
	for _, headers := range n.Headers {
		for name, v := range headers {
			add(v, "["+name+"]")
			if _, bare, ok := strings.Cut(v, " "); ok {
				add(bare, "["+name+"]")
			}
		}
	}
	for _, kv := range env {
		if name, v, _ := strings.Cut(kv, "="); !sandbox.PassesRemotely(name) {
			add(v, "["+name+"]")
		}
	}
	return strings.NewReplacer(pairs...).Replace
}

// tasks are the snapshots in launch's records.
type tasks struct{ store *records.Store }

func (t tasks) Snapshot(task string) (string, error) {
	found, err := t.store.Task(task)
	if errors.Is(err, records.ErrNotFound) {
		return "", nil
	}
	if err == nil && found.Tier != tierVercel {
		err = fmt.Errorf("task %s is of tier %s", task, found.Tier)
	}
	return found.Snapshot, err
}

func (t tasks) Set(task, id string) (string, error) { return t.store.SetTask(task, tierVercel, id) }
func (t tasks) Drop(task, id string) error          { return t.store.DropTask(task, id) }

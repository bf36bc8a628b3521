package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/term"

	"egressd/internal/run/records"
	"egressd/internal/run/tap"
	"egressd/sandbox"
	"egressd/sandbox/vercel"
)

// keeping is what the command line says about a sandbox that stays.
type keeping struct {
	name string   // --name
	raw  []string // the flags as they were typed

	announce *os.File // a background run says here what it is called, and nothing more
	mode     string   // foreground (also "") or background
}

// store opens launch's records of what it keeps.
func (l *launcher) store() (*records.Store, error) {
	state := l.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(state) {
		home := l.Getenv("HOME")
		if !filepath.IsAbs(home) {
			return nil, errors.New("sandboxes with a name are kept below HOME, which is not set: set it, or XDG_STATE_HOME")
		}
		state = filepath.Join(home, ".local", "state")
	}
	return records.Open(filepath.Join(state, "egressd"), time.Now)
}

// savedFlags is what must be said again to run in the same sandbox: flags as
// --name=value, the names alone of variables, and nothing about one run only.
func savedFlags(raw []string, fs *flag.FlagSet) []string {
	var saved []string
	for len(raw) > 0 {
		arg := raw[0]
		raw = raw[1:]
		if arg == "--" {
			break
		}
		name, value, glued := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		f := fs.Lookup(name)
		if f == nil {
			continue // the command line was parsed: not a flag of ours
		}
		if b, ok := f.Value.(interface{ IsBoolFlag() bool }); ok && b.IsBoolFlag() {
			if !glued {
				value = "true"
			}
		} else if !glued && len(raw) > 0 {
			value, raw = raw[0], raw[1:]
		}
		switch name {
		case "name", "learn", "script":
			continue
		case "env":
			value, _, _ = strings.Cut(value, "=")
		}
		saved = append(saved, "--"+name+"="+value)
	}
	return saved
}

// recording is a run that is records. Nil is one that is not.
type recording struct {
	*session
	store *records.Store
	rec   *records.Recorder
	tap   *tap.Tap
}

// record begins the record of a run that has a name, and listens to its output.
func (s *session) record(spec *sandbox.Spec) (*recording, error) {
	if s.opts.keeping.name == "" {
		return nil, nil
	}
	store, err := s.store()
	if err != nil {
		return nil, err
	}
	r := &recording{session: s, store: store}
	if err := r.begin(spec); err != nil {
		store.Close()
		return nil, fmt.Errorf("--name %s: %w", s.opts.keeping.name, err)
	}
	s.recording = r
	return r, nil
}

// located notes where a hosted run is, so that another launch can find it.
func (s *session) located(at vercel.At) {
	r := s.recording
	if r == nil {
		return
	}
	err := r.store.Update(r.opts.keeping.name, func(b *records.Sandbox) {
		b.Remote = records.Remote{
			Sandbox: at.Sandbox, Session: at.Session, Workdir: at.Workdir, Region: at.Region,
			Project: s.client.ProjectID, Team: s.client.TeamID,
		}
	})
	if at.Command != "" {
		err = errors.Join(err, r.rec.Remote(records.RemoteCommand{Session: at.Session, ID: at.Command}))
	}
	if err != nil {
		s.note("the record of sandbox " + r.opts.keeping.name + " is not whole: " + err.Error())
	}
}

// left notes how a hosted sandbox was left.
func (s *session) left(until time.Time) {
	r := s.recording
	if r == nil {
		return
	}
	err := r.store.Update(r.opts.keeping.name, func(b *records.Sandbox) {
		b.Status = records.Stopped
		if !until.IsZero() {
			b.Status = records.Active
			b.Remote.Until = until.UTC().Truncate(time.Second)
		}
	})
	if err != nil {
		s.note("the record of sandbox " + r.opts.keeping.name + " is not whole: " + err.Error())
	}
}

func (r *recording) begin(spec *sandbox.Spec) error {
	if err := r.box(); err != nil {
		return err
	}
	terminal := r.opts.keeping.announce == nil && spec.Stdin != nil && spec.Stdout != nil &&
		term.IsTerminal(int(spec.Stdin.Fd())) && term.IsTerminal(int(spec.Stdout.Fd()))
	p := records.Process{
		Sandbox: r.opts.keeping.name, Kind: records.KindCommand, Mode: records.Foreground, Provider: r.opts.tier,
		Command: "sh", Dir: spec.Dir, Env: map[string]string{}, Metadata: records.Metadata{Launcher: os.Getpid()},
	}
	if r.opts.keeping.mode != "" {
		p.Mode = r.opts.keeping.mode
	}
	if len(spec.Argv) > 0 {
		p.Command, p.Args = spec.Argv[0], spec.Argv[1:]
	} else {
		p.Kind = records.KindScript
	}
	for _, kv := range r.opts.env {
		name, _, _ := strings.Cut(kv, "=")
		p.Env[name] = records.Redacted
	}
	if terminal {
		p.Metadata.Output = "went to a terminal, and is not recorded"
	}
	var err error
	if r.rec, err = r.store.Start(p); err != nil {
		return err
	}
	if out := r.opts.keeping.announce; out != nil {
		_, err = fmt.Fprintf(out, "%s\n", r.rec.Process().ID)
		spec.Stdin, spec.Stdout, spec.Stderr = nil, nil, nil
		err = errors.Join(err, out.Close())
	}
	if !terminal && err == nil {
		if r.tap, err = tap.New(spec.Stdout, spec.Stderr, r.hear); err == nil {
			spec.Stdout, spec.Stderr = r.tap.Stdout, r.tap.Stderr
		}
	}
	if err != nil {
		return errors.Join(err, r.rec.Finish("", nil, err.Error()))
	}
	return nil
}

// box makes the sandbox's record, or checks that it is one of this tier.
func (r *recording) box() error {
	here, err := os.Getwd()
	if err != nil {
		return err
	}
	k := r.opts.keeping
	b := records.Sandbox{Name: k.name, Tier: r.opts.tier, Workspace: here, Flags: savedFlags(k.raw, new(options).flags())}
	err = r.store.Create(b)
	if !errors.Is(err, records.ErrExists) {
		return err
	}
	old, err := r.store.Sandbox(k.name)
	if err != nil {
		return err
	}
	if old.Tier != b.Tier || old.Workspace != b.Workspace {
		return fmt.Errorf("there is a sandbox of that name for %s in %s: take another name, or launch sandbox rm %s", old.Tier, old.Workspace, k.name)
	}
	if there := old.Remote.Project; r.client != nil && there != "" && there != r.client.ProjectID {
		return fmt.Errorf("there is a sandbox of that name in project %s, and this is %s: take another name, or launch sandbox rm %s", there, r.client.ProjectID, k.name)
	}
	return r.store.Update(k.name, func(now *records.Sandbox) {
		now.Status, now.Flags, now.Reason = records.Active, b.Flags, ""
	})
}

func (r *recording) hear(isErr bool, data []byte) {
	kind := records.ChunkStdout
	if isErr {
		kind = records.ChunkStderr
	}
	r.rec.Write(kind, data)
}

// end finishes the record.
func (r *recording) end(res sandbox.Result, runErr error) error {
	if r == nil {
		return nil
	}
	var err error
	if r.tap != nil {
		err = r.tap.Close()
	}
	status, message := records.Status(""), ""
	if res.TimedOut {
		status = records.Killed
	}
	if runErr != nil {
		message = runErr.Error()
	}
	err = errors.Join(err, r.rec.Finish(status, &res.ExitCode, message), r.store.Close())
	if err != nil {
		return fmt.Errorf("the record of sandbox %s is not whole: %w", r.opts.keeping.name, err)
	}
	return nil
}

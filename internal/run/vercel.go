package run

import (
	"crypto/sha256"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/term"

	"egressd/internal/run/microvm"
	"egressd/internal/run/place"
	"egressd/internal/run/records"
	"egressd/policy/files"
	"egressd/sandbox"
	"egressd/sandbox/vercel"
	"egressd/sandbox/vercel/inside"
	"egressd/sandbox/vercel/network"
)

// microVM builds the backend of a run in a hosted microVM, and completes spec for
// it.
func (s *session) microVM(spec *sandbox.Spec, log *slog.Logger) (*vercel.Backend, error) {
	translate, within := network.Translate, (*inside.Gate)(nil)
	if file := s.opts.MicroVM.Gate; file != "" {
		var err error
		if within, err = inside.Open(file, s.policy); err != nil {
			return nil, fmt.Errorf("--gate-inside: %w", err)
		}
		translate = network.TranslateOuter
	}
	n, err := translate(s.policy, func(env string) (string, bool) {
		_, value, ok := s.secrets.Value(env)
		return value, ok
	})
	if err != nil {
		return nil, err
	}
	named := append(slices.Clone([]string(s.opts.Program.Env)), s.secrets.Env()...)
	if spec.Env, err = sandbox.RemoteEnv(s.Environ, s.opts.Argv, named); err != nil {
		return nil, fmt.Errorf("--env: %w", err)
	}
	if spec.Files, err = s.filesElsewhere(spec.Dir); err != nil {
		return nil, err
	}
	client, err := s.opts.MicroVM.Client(s.Program, log, s.opts.MicroVM.Vouched(s.Records, func(text string) { s.Say("launch: %s\n", text) }))
	if err != nil {
		return nil, err
	}
	client.Redact = microvm.Redactor(n, spec.Env)
	b := &vercel.Backend{
		Client: client, Network: n, Events: s.trail.Sink(), Log: log, Session: s.trail.Session, Gate: within, Options: s.opts.MicroVM.Options,
		Changed: s.returned, Located: s.located, Left: s.left,
	}
	s.client, spec.Notes = client, s.note
	if !s.opts.Report.Quiet && term.IsTerminal(int(s.Stderr.Fd())) {
		b.Progress = s.progress()
	}
	if err := s.remember(b); err != nil {
		return nil, err
	}
	for _, note := range n.Notes {
		s.note(note)
	}
	if here, err := os.Getwd(); err == nil && here == filepath.Clean(s.Getenv("HOME")) {
		s.note("the workspace is your home directory: all of it is sent, but for credentials and what .gitignore names")
	}
	return b, nil
}

// filesElsewhere applies the files section of the policy to the workspace of a run
// on another machine. What agents log in with here is not sent for them.
func (s *session) filesElsewhere(dir string) (*files.Gate, error) {
	root, err := vercel.Workspace(dir)
	if err != nil {
		return nil, err
	}
	at, err := place.Elsewhere(place.Run{Dir: root, Env: s.Environ, StateHome: s.Getenv("XDG_STATE_HOME")})
	if err != nil {
		return nil, err
	}
	return s.policy.Files(at)
}

// remember gives b what earlier runs left, and keeps what this one leaves. A
// machine without records is an error for a task only.
func (s *session) remember(b *vercel.Backend) error {
	store, err := s.Records()
	if err != nil {
		if b.Task != "" {
			return err
		}
		return nil
	}
	if b.Owner, err = microvm.Owner(s.Program, store); err != nil {
		return err
	}
	b.Tasks = microvm.Tasks(store)
	b.Synced = s.opts.MicroVM.Synced(store, b.Client)
	b.Shared = func() bool { return s.shared(store) }
	b.Known = func(workspace string) map[string][sha256.Size]byte {
		known, err := store.Returned(workspace)
		if err != nil {
			s.note("what earlier runs left here is not known: " + err.Error())
		}
		return known
	}
	b.Changed = func(c vercel.Changes) {
		s.returned(c)
		if err := store.AddReturned(c.Workspace, c.Sums); err != nil {
			s.note("what came back is not remembered: " + err.Error())
		}
	}
	return nil
}

// shared reports whether another launch runs something in this run's sandbox,
// which this run is about to leave.
func (s *session) shared(store *records.Store) bool {
	if s.recording == nil {
		return false
	}
	last, err := store.MarkLeaving(s.opts.Keeping.Name, s.recording.rec.Process().ID)
	if err != nil {
		s.note("what else runs in the sandbox is not known: " + err.Error())
	}
	return err == nil && !last
}

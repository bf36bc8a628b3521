package run

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"egressd/internal/run/records"
	"egressd/internal/run/tap"
	"egressd/sandbox"
	"egressd/sandbox/vercel"
)

// recordsName is the directory of launch's records in that of a user's states.
const recordsName = "egressd"

// Records opens launch's records, below XDG_STATE_HOME or HOME. The caller closes
// them.
func (l *Launcher) Records() (*records.Store, error) {
	dir, err := l.recordsDir()
	if err != nil {
		return nil, err
	}
	return records.Open(dir, time.Now)
}

// recordsDir reports where the records are.
func (l *Launcher) recordsDir() (string, error) {
	state := l.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(state) {
		home := l.Getenv("HOME")
		if !filepath.IsAbs(home) {
			return "", errors.New("launch's records are kept below HOME, which is not set: set it, or XDG_STATE_HOME")
		}
		state = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(state, recordsName), nil
}

// recording is the record of a run that has a name. Nil is a run without one.
type recording struct {
	*session
	store *records.Store
	rec   *records.Recorder
	tap   *tap.Tap
	// announce tells the starter of a run in the background its ID, the first time
	// that it is called. Nil: nobody waits for it.
	announce func() error
}

// record begins the record of a run that has a name, and taps its output.
func (s *session) record(spec *sandbox.Spec) (*recording, error) {
	if s.opts.Keeping.Name == "" {
		return nil, nil
	}
	store, err := s.Records()
	if err != nil {
		return nil, err
	}
	r := &recording{session: s, store: store}
	if err := r.begin(spec); err != nil {
		store.Close()
		return nil, fmt.Errorf("--name %s: %w", s.opts.Keeping.Name, err)
	}
	s.recording = r
	return r, nil
}

func (r *recording) begin(spec *sandbox.Spec) error {
	if err := r.sandbox(); err != nil {
		return err
	}
	k := r.opts.Keeping
	terminal := k.Announce == nil && spec.Stdin != nil && spec.Stdout != nil &&
		term.IsTerminal(int(spec.Stdin.Fd())) && term.IsTerminal(int(spec.Stdout.Fd()))
	p, err := r.process(spec, terminal)
	if err != nil {
		return err
	}
	if r.rec, err = r.store.Start(p); err != nil {
		return err
	}
	if k.Announce != nil {
		spec.Stdin, spec.Stdout, spec.Stderr = nil, nil, nil
		r.announceWith(spec)
	}
	if !terminal && err == nil {
		if r.tap, err = tap.New(spec.Stdout, spec.Stderr, r.output); err == nil {
			spec.Stdout, spec.Stderr = r.tap.Stdout, r.tap.Stderr
		}
	}
	if err != nil {
		return errors.Join(err, r.rec.Finish("", nil, err.Error()))
	}
	return nil
}

// announceWith announces the ID as soon as this process forwards signals: whoever
// knows the ID may send one at once, which until then would end this process and
// leave a record without an end. A run that fails before is announced at its end.
func (r *recording) announceWith(spec *sandbox.Spec) {
	to, id, forwarding := r.opts.Keeping.Announce, r.rec.Process().ID, spec.Forwarding
	r.announce = sync.OnceValue(func() error {
		_, err := fmt.Fprintf(to, "%s\n", id)
		return errors.Join(err, to.Close())
	})
	spec.Forwarding = func() {
		if forwarding != nil {
			forwarding()
		}
		_ = r.announce() // end reports the error
	}
}

// process is the record of what spec runs.
func (r *recording) process(spec *sandbox.Spec, terminal bool) (records.Process, error) {
	started, err := records.StartedAt(os.Getpid())
	p := records.Process{
		Sandbox: r.opts.Keeping.Name, Kind: records.KindCommand, Mode: records.Foreground, Provider: r.opts.Tier,
		Command: "sh", Dir: spec.Dir, Env: map[string]string{}, Metadata: records.Metadata{Launcher: os.Getpid(), Started: started},
	}
	if r.opts.Keeping.Mode != "" {
		p.Mode = r.opts.Keeping.Mode
	}
	if len(spec.Argv) > 0 {
		p.Command, p.Args = spec.Argv[0], spec.Argv[1:]
	} else {
		p.Kind = records.KindScript
	}
	for _, kv := range r.opts.Program.Env {
		name, _, _ := strings.Cut(kv, "=")
		p.Env[name] = records.Redacted
	}
	if terminal {
		p.Metadata.Output = "went to a terminal, and is not recorded"
	}
	return p, err
}

// sandbox makes the record of the run's sandbox, or checks that the one of that name
// is of this tier, workspace and account.
func (r *recording) sandbox() error {
	here, err := os.Getwd()
	if err != nil {
		return err
	}
	k := r.opts.Keeping
	b := records.Sandbox{Name: k.Name, Tier: r.opts.Tier, Workspace: here, Flags: k.saved()}
	err = r.store.Create(b)
	if !errors.Is(err, records.ErrExists) {
		return err
	}
	old, err := r.store.Sandbox(k.Name)
	if err != nil {
		return err
	}
	if old.Tier != b.Tier || old.Workspace != b.Workspace {
		return fmt.Errorf("there is a sandbox of that name for %s in %s: take another name, or launch sandbox rm %s", old.Tier, old.Workspace, k.Name)
	}
	if there := old.Remote.Project; r.client != nil && there != "" && there != r.client.ProjectID {
		return fmt.Errorf("there is a sandbox of that name in project %s, and this is %s: take another name, or launch sandbox rm %s", there, r.client.ProjectID, k.Name)
	}
	return r.store.Renew(k.Name, func(now *records.Sandbox) {
		now.Status, now.Flags, now.Reason = records.Active, b.Flags, ""
	})
}

// output records what the program prints.
func (r *recording) output(isErr bool, data []byte) {
	kind := records.ChunkStdout
	if isErr {
		kind = records.ChunkStderr
	}
	r.rec.Write(kind, data)
}

// located notes where a hosted run is, so that another launch can find it.
func (s *session) located(at vercel.At) {
	r := s.recording
	if r == nil {
		return
	}
	err := r.store.Update(r.opts.Keeping.Name, func(b *records.Sandbox) {
		b.Remote = records.Remote{
			Sandbox: at.Sandbox, Session: at.Session, Workdir: at.Workdir, Region: at.Region,
			Project: s.client.ProjectID, Team: s.client.TeamID,
		}
	})
	if at.Command != "" {
		err = errors.Join(err, r.rec.Remote(records.RemoteCommand{Session: at.Session, ID: at.Command}))
	}
	r.noteError(err)
}

// left notes how a hosted sandbox was left, and says what the run has used.
func (s *session) left(l vercel.Left) {
	s.used(l)
	r := s.recording
	if r == nil {
		return
	}
	r.noteError(r.store.Update(r.opts.Keeping.Name, func(b *records.Sandbox) {
		b.Status = records.Stopped
		if !l.Until.IsZero() {
			b.Status = records.Active
			b.Remote.Until = l.Until.UTC().Truncate(time.Second)
		}
	}))
}

func (r *recording) noteError(err error) {
	if err != nil {
		r.note("the record of sandbox " + r.opts.Keeping.Name + " is not whole: " + err.Error())
	}
}

// end finishes the record.
func (r *recording) end(res sandbox.Result, runErr error) error {
	if r == nil {
		return nil
	}
	var err error
	if r.announce != nil {
		err = r.announce()
	}
	if r.tap != nil {
		err = errors.Join(err, r.tap.Close())
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
		return fmt.Errorf("the record of sandbox %s is not whole: %w", r.opts.Keeping.Name, err)
	}
	return nil
}

package run

import (
	"fmt"
	"path/filepath"
	"time"

	"golang.org/x/term"

	"egressd/internal/run/feed"
	"egressd/internal/run/journal"
	"egressd/internal/run/live"
)

// runsName is the directory of the last runs among launch's records.
const runsName = "runs"

// maxWatchQueue bounds what waits for a terminal that is slow, in bytes.
const maxWatchQueue = 256 << 10

// Runs is the record of the last runs.
func (l *Launcher) Runs() (journal.Store, error) {
	dir, err := l.recordsDir()
	return journal.Store{Dir: filepath.Join(dir, runsName), Now: time.Now}, err
}

// keep is what is kept of a run for later, and told of it at once. The zero keep is
// nothing.
type keep struct {
	entry *journal.Entry // nil: nothing is kept
	watch *feed.Feed     // nil: nobody watches
}

// begin begins the record of the run, unless it is switched off, and the lines of --watch.
// A run whose record cannot be kept runs all the same: what must be on record has
// --events.
func (k *keep) begin(s *session) {
	if s.opts.Report.Watch {
		k.watch = feed.New(lines(s.Stderr), feed.Bounds{Queue: maxWatchQueue})
		terminal := s.Stderr != nil && term.IsTerminal(int(s.Stderr.Fd()))
		s.trail.Also(&live.Sink{W: k.watch, Paint: s.Paint(s.opts.Report.Color, terminal), Now: time.Now})
	}
	if s.opts.Report.NoRecord {
		return
	}
	var err error
	if k.entry, err = s.beginEntry(); err != nil {
		s.note(fmt.Sprintf("no record of this run is kept for launch logs: %v (--no-record goes without)", err))
		return
	}
	s.trail.Also(k.entry)
}

func (s *session) beginEntry() (*journal.Entry, error) {
	store, err := s.Runs()
	if err != nil {
		return nil, err
	}
	if err := makePrivate(filepath.Dir(store.Dir), s.Getenv("HOME"), false); err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(s.opts.here())
	if err != nil {
		return nil, err
	}
	h := journal.Head{Session: s.trail.Session, Directory: dir, Tier: s.opts.Tier}
	if len(s.opts.Argv) > 0 {
		h.Program = filepath.Base(s.opts.Argv[0])
	}
	return store.Begin(h)
}

// endWatch prints what still waits, before the summary.
func (k *keep) endWatch(s *session) {
	if k.watch == nil {
		return
	}
	if lost, _ := k.watch.Close(); lost > 0 && !s.opts.Report.Quiet {
		s.Say("launch: %d decisions more came too fast to show\n", lost)
	}
}

// end ends the record, and says where it is to a person who reads the summary.
func (k *keep) end(s *session, code int, runErr error) {
	if k.entry == nil {
		return
	}
	ending := journal.Ending{ExitCode: code}
	ending.Allowed, ending.Blocked, ending.Failed = s.trail.Counts()
	if runErr != nil {
		ending.Error = runErr.Error()
	}
	if err := k.entry.End(ending); err != nil {
		s.note(fmt.Sprintf("the record of this run is not whole: %v", err))
		return
	}
	if ending.Allowed+ending.Blocked+ending.Failed > 0 && !s.opts.Report.NoSummary && s.Stderr != nil && term.IsTerminal(int(s.Stderr.Fd())) {
		s.note("all of it, later: launch logs " + k.entry.ID())
	}
}

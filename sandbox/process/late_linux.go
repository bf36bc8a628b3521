package process

import (
	"log/slog"

	"egressd/event"
	"egressd/policy/files"
	"egressd/sandbox/process/latecomers"
)

// keptFiles is what the rules about files need beside mounts. The zero keptFiles
// needs nothing.
type keptFiles struct {
	env    []string          // variables that say where an agent's files are
	gate   *files.Gate       // the rules; nil before the configuration
	guard  *latecomers.Guard // of names that do not exist yet; nil: none
	unmake func()            // takes away what was made for the program and not used; nil: nothing was made
}

// close ends what is left when the program has ended.
func (k *keptFiles) close() {
	if k.guard != nil {
		k.guard.Close()
	}
	if k.unmake != nil {
		k.unmake()
	}
}

// guardFiles begins to watch for protected names that do not exist yet.
func (s *supervisor) guardFiles(c *config) {
	if !c.found.Whole {
		s.b.log().Warn("this directory is too large to look through: names deep in it that run later outside are not protected", slog.String("dir", c.Dir))
	}
	if len(c.found.Watch) == 0 || s.b.hooks.skip["latecomers"] {
		return
	}
	s.files.guard = latecomers.New(latecomers.Config{Gate: c.gate, Plan: c.found, Aside: s.b.Outside.Aside, Refused: s.fileRefused, Log: s.b.log()})
	go s.files.guard.Run()
}

// fileRefused tells and records something that was moved out of the program's
// reach.
func (s *supervisor) fileRefused(r latecomers.Refusal) {
	what := r.Path + " was made inside and runs later outside, or is obeyed there: it was moved to " + r.To
	if r.Err != nil {
		what = r.Path + " was made inside and runs later outside, or is obeyed there, and could not be moved away: " + r.Err.Error()
	}
	if s.spec.Notes != nil {
		s.spec.Notes(what)
	} else {
		s.b.log().Warn(what)
	}
	s.record(&event.FileRefused{Path: r.Path, Wanted: files.ReadWrite, Reason: r.Decision.Reason, Rule: r.Decision.Rule})
}

package process

import (
	"log/slog"

	"egressd/event"
	"egressd/internal/linux/mountinfo"
	"egressd/policy/files"
	"egressd/sandbox/process/control"
)

// refused records what pid 1 tells of something that a program inside was refused.
// The words are the init's, which holds no secrets and takes no orders from the
// program; the path is whatever a program made of it.
func (s *supervisor) refused(r *control.Refusal) {
	switch r.Call {
	case control.CallConnect:
		s.record(&event.FileRefused{Path: r.Path, Wanted: files.ReadWrite, Reason: files.Socket})
	case control.CallWrite:
		s.refusedFile(r.Path, files.ReadWrite)
	case control.CallRead:
		s.refusedFile(r.Path, files.ReadOnly)
	case control.CallMore:
		s.b.log().Warn("more files were refused than are recorded")
	case control.CallUnseen:
		s.b.log().Warn("what the program looks for among hidden files is not recorded", slog.String("error", r.Path))
	}
}

// refusedFile records a file that the rules refuse. Whatever else is in the way (a
// read-only disk, a protected file, the kernel's own file systems) is not theirs.
func (s *supervisor) refusedFile(path string, wanted files.Access) {
	for _, own := range []string{"/proc", "/sys", "/dev"} {
		if mountinfo.Within(path, own) {
			return
		}
	}
	if d := s.files.gate.Decide(path); d.Access < wanted {
		s.record(&event.FileRefused{Path: path, Wanted: wanted, Reason: d.Reason, Rule: d.Rule})
	}
}

func (s *supervisor) record(body event.Body) {
	if s.b.Gate.Events == nil {
		return
	}
	e := event.Event{Session: s.b.Gate.Session, Isolation: isolationNetns, Body: body}
	if p := s.policy(); p != nil {
		e.Policy = p.Digest()
	}
	if err := s.b.Gate.Events.Emit(e); err != nil {
		s.b.log().Error("a refusal was not recorded", slog.Any("error", err))
	}
}

package process

import (
	"log/slog"

	"egressd/event"
	"egressd/policy/files"
	"egressd/sandbox/process/control"
)

// refused records what pid 1 tells of something that a program inside was refused.
// The words are the init's, which holds no secrets and takes no orders from the
// program; the path is whatever a program made of it.
func (s *supervisor) refused(r *control.Refusal) {
	if r.Call == control.CallConnect {
		s.record(&event.FileRefused{Path: r.Path, Wanted: files.ReadWrite, Reason: files.Socket})
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

package process

import (
	"fmt"
	"path/filepath"

	"egressd/internal/linux/mountinfo"
	"egressd/sandbox"
	"egressd/sandbox/process/control"
)

// layer plans the overlay over dir, the working directory.
//
// Threat: the program changes the directory by a way around the layer -> what is
// mounted below the directory is not part of it, so there must be nothing; other
// names of the directory are read-only, as everything outside it. Left over: what a
// rule of the person's (--write) lets the program write elsewhere, and what agents
// keep in HOME.
func (s *supervisor) layer(dir string, mounts mountinfo.Table) (control.Layer, error) {
	base := s.b.Outside.Overlay
	if base == "" {
		return control.Layer{}, nil
	}
	refuse := func(what, fix string) (control.Layer, error) {
		return control.Layer{}, &sandbox.CapabilityError{Isolation: isolationNetns, What: "an overlay over " + dir + ": " + what, Fix: fix}
	}
	dir, err := filepath.EvalSymlinks(dir)
	if err == nil {
		base, err = filepath.EvalSymlinks(base)
	}
	if err != nil {
		return control.Layer{}, fmt.Errorf("overlay: %w", err)
	}
	switch {
	case dir == "/":
		return refuse("it is the whole file system", "start in a directory below it")
	case mountinfo.Within(base, dir) || mountinfo.Within(dir, base):
		return refuse(base+", which takes the changes, is not apart from it", "set TMPDIR, or name another directory")
	}
	for _, m := range mounts {
		if m.Point != dir && mountinfo.Within(m.Point, dir) {
			return refuse(m.Point+" is a file system of its own, which an overlay would not show", "unmount it, or start in another directory")
		}
	}
	return control.Layer{Over: dir, Upper: filepath.Join(base, "changes"), Work: filepath.Join(base, "work")}, nil
}

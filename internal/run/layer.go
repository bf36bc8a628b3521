package run

import (
	"fmt"
	"os"
	"path/filepath"

	"egressd/internal/cli"
	"egressd/internal/run/overlay"
	"egressd/internal/run/place"
	"egressd/policy/files"
	"egressd/sandbox"
	"egressd/sandbox/hermetic"
)

// layerParent is where the changes of an overlay are kept unless TMPDIR or
// --overlay-to says otherwise: on a disk, as they may be large.
const layerParent = "/var/tmp"

// maxRecorded bounds the changes that are recorded one by one.
const maxRecorded = 10_000

// layer is the overlay of a run in the process tier.
type layer struct {
	*session
	store *overlay.Store
	keep  bool
}

// overlaid reports whether the run in the process tier has an overlay.
func (o *Options) overlaid() bool { return o.Script.Overlay || o.Program.OverlayTo != "" }

// makeLayer makes the directory for the changes, for --overlay. "": there is none.
func (s *session) makeLayer(spec sandbox.Spec) (dir string, err error) {
	if !s.opts.overlaid() {
		return "", nil
	}
	l := &layer{session: s, keep: s.opts.Program.OverlayTo != ""}
	dir = s.opts.Program.OverlayTo
	if !l.keep {
		parent := s.Getenv("TMPDIR")
		if !filepath.IsAbs(parent) {
			parent = layerParent
		}
		if dir, err = os.MkdirTemp(parent, "launch-overlay-"); err != nil {
			return "", fmt.Errorf("--overlay: %w", err)
		}
	}
	workspace, err := filepath.Abs(spec.Dir)
	if err == nil {
		workspace, err = filepath.EvalSymlinks(workspace)
	}
	uid, gid := -1, -1
	if u := spec.RunAs; u != nil {
		uid, gid = int(u.UID), int(u.GID)
	}
	if err == nil {
		l.store, err = overlay.Make(dir, workspace, uid, gid)
	}
	if err != nil {
		if !l.keep {
			_ = os.Remove(dir) // it is empty, or the error says where it is
		}
		return "", fmt.Errorf("--overlay: %w", err)
	}
	s.layer = l
	return l.store.Dir, nil
}

// end lists what the overlay held, and keeps or removes it. ran: a program did.
func (l *layer) end(ran bool) error {
	if l == nil {
		return nil
	}
	if !ran {
		return l.store.Remove()
	}
	all, total, err := l.store.Changes(maxRecorded)
	if err != nil {
		return fmt.Errorf("what the program changed is not known, and stays in %s: %w", l.store.Dir, err)
	}
	list := make([]hermetic.Change, 0, len(all))
	for _, c := range all {
		list = append(list, hermetic.Change{Kind: c.Kind, Path: c.Path})
		if err := l.trail.Changed(c.Path, c.Kind); err != nil {
			return err
		}
	}
	l.keptOut(list, total)
	if !l.keep {
		return l.store.Remove()
	}
	if total > 0 {
		l.note("to apply them: launch apply " + cli.Quote(l.store.Dir))
	}
	return l.store.Keep()
}

// Apply makes the changes that a run with --overlay-to left in dir, or says which it
// would make. It reports cli.ExitNo if one is refused.
func (l *Launcher) Apply(dir string, dry bool) (code int, err error) {
	store, err := overlay.Open(dir)
	if err != nil {
		return cli.ExitUsage, err
	}
	at, err := place.Find(place.Run{Dir: store.Workdir(), Env: l.Environ, StateHome: l.Getenv("XDG_STATE_HOME")})
	if err != nil {
		return cli.ExitNo, err
	}
	gate, err := files.Section{}.In(at)
	if err != nil {
		return cli.ExitNo, err
	}
	res, err := store.Apply(func(path string) string {
		if d := gate.Decide(path); d.Access != files.ReadWrite {
			return "launch does not write such a file (" + d.Reason.String() + "): copy it yourself, once you have read it"
		}
		return ""
	}, dry)
	did := "applied"
	if dry {
		did = "would be applied"
	}
	for _, c := range res.Applied {
		l.Print(string(c.Kind) + " " + cli.Safe(c.Path) + "\n")
	}
	for _, r := range res.Refused {
		l.Say("launch: refused: %c %s: %s\n", r.Kind, cli.Safe(r.Path), cli.Safe(r.Why))
	}
	if err != nil {
		return cli.ExitNo, err
	}
	l.Say("launch: %s %s to %s, %d refused\n", changes(len(res.Applied)), did, cli.Safe(store.Workdir()), len(res.Refused))
	if len(res.Refused) > 0 {
		return cli.ExitNo, nil
	}
	return cli.ExitOK, nil
}

package process

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"egressd/internal/linux/mountinfo"
	"egressd/internal/linux/replaced"
	"egressd/sandbox"
)

// watched lists the names whose mounts must last: all that is protected or hidden,
// but what a private directory hides anyway.
func (c *config) watched() []string {
	var names []string
	for _, g := range c.Protect {
		names = append(names, append(slices.Clone(g.Names), g.File)...)
	}
	names = append(names, c.Plan.Hidden...)
	return slices.DeleteFunc(names, func(path string) bool {
		back := func(b string) bool { return mountinfo.Within(path, b) }
		for _, b := range c.Plan.Binds {
			if back(b.Path) {
				return false
			}
		}
		return below(path, c.Plan.Roots) || strings.HasPrefix(path, "/proc/")
	})
}

// nameWatch is a Watch and the goroutine that runs it. The zero nameWatch watches
// nothing.
type nameWatch struct {
	*replaced.Watch
	changed chan replaced.Change
	stop    context.CancelFunc // nil: it does not run
	ended   chan struct{}
	untold  []replaced.Change // nobody took them; valid once ended is closed
}

// openNames notes what must not be replaced.
func (s *supervisor) openNames(c *config) (err error) {
	s.names.changed = make(chan replaced.Change)
	if !s.b.hooks.skip["replaced"] {
		s.names.Watch, err = replaced.Open(c.watched())
	}
	return err
}

// watchNames notices from now on what happens to the protected names.
func (s *supervisor) watchNames() {
	w := &s.names
	if w.Watch == nil {
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	w.stop, w.ended = stop, make(chan struct{})
	go func() {
		defer close(w.ended)
		w.Run(ctx, s.openMounts, func(c replaced.Change) {
			select {
			case w.changed <- c:
			case <-ctx.Done():
				w.untold = append(w.untold, c)
			}
		})
	}()
}

// openMounts opens the mountinfo file of the run; nil: there is none to be had.
func (s *supervisor) openMounts() *os.File {
	f, err := s.child.Mounts()
	if errors.Is(err, fs.ErrPermission) {
		s.b.log().Warn("the mounts inside cannot be watched: protected files are, by their names: " + err.Error())
	}
	return f // any other error is the end of the init
}

// lastLook handles what happened to the protected names since they were looked at
// last. err is how the run ended so far.
func (s *supervisor) lastLook(err error) error {
	w := &s.names
	if w.stop == nil {
		return err
	}
	w.stop()
	<-w.ended
	w.Check(func(c replaced.Change) { w.untold = append(w.untold, c) })
	for _, c := range w.untold {
		if e := s.replaced(c); err == nil {
			err = e
		}
	}
	return err
}

// closeNames lets go of the protected files.
func (s *supervisor) closeNames() {
	if s.names.Watch != nil {
		s.names.Close()
	}
}

// replaced handles a protected name that was replaced. An error ends the run: by
// then nothing of it is left.
func (s *supervisor) replaced(c replaced.Change) error {
	end := c.Exposed && !s.b.Outside.KeepOn
	if end {
		s.child.Kill()
		s.child.Wait() // nobody writes any more
	}
	if tell := s.b.Outside.Replaced; tell != nil {
		r := Replacement{Path: c.Path, Exposed: c.Exposed}
		r.Was, r.Now = c.Digests()
		tell(r)
	}
	if !end {
		return nil
	}
	s.res.ExitCode = sandbox.ExitLauncher
	return fmt.Errorf("%s %w", c.Path, ErrReplaced)
}

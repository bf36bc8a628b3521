package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"egressd/internal/linux/mountinfo"
	"egressd/internal/linux/replaced"
	"egressd/sandbox"
)

// ErrReplaced is why a run was ended before its program: a protected file was
// replaced on this machine.
var ErrReplaced = errors.New("was replaced on this machine during the run, which took its protection away: the program was ended")

// watched lists the names whose mounts must last: all that is protected or hidden,
// but what a private directory hides anyway.
func (c *config) watched() []string {
	var names []string
	for _, g := range c.Protect {
		names = append(names, append(slices.Clone(g.Names), g.File)...)
	}
	names = append(names, c.Hidden...)
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

// watch notices from now on, until ctx ends, what happens to the protected names.
// wg counts what it starts.
func (s *supervisor) watch(ctx context.Context, wg *sync.WaitGroup) {
	w := s.names
	if w == nil {
		return
	}
	mounts := func() (*os.File, error) {
		f, err := s.child.Mounts()
		if err != nil {
			s.b.log().Warn("the mounts inside cannot be watched: protected files are, by their names: " + err.Error())
		}
		return f, err
	}
	wg.Go(func() {
		w.Run(ctx, mounts, func(c replaced.Change) {
			select {
			case s.changed <- c:
			case <-ctx.Done():
			}
		})
	})
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

// closeNames lets go of the watched files.
func (s *supervisor) closeNames() {
	if s.names != nil {
		s.names.Close()
	}
}

package process

import (
	"slices"

	"egressd/internal/linux/mountinfo"
	"egressd/sandbox/process/control"
)

// config is what the init is told, and what only planning it needs.
type config struct {
	control.Config
	paths  []string        // values of the environment that may name files, see named
	home   string          // the harness's HOME; "" none
	mounts mountinfo.Table // of this process
}

// needsHidden reports whether something is to be brought back that lies behind
// a link into what an init hides first.
func (c *config) needsHidden() bool {
	return slices.ContainsFunc(append(slices.Clone(c.Plan.Binds), c.Plan.Shown...), func(b control.Bind) bool {
		return mountinfo.Within(b.Source, "/dev") || mountinfo.Within(b.Source, "/proc") || mountinfo.Within(b.Source, "/sys")
	})
}

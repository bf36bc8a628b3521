package process

import (
	"path/filepath"
	"slices"

	"egressd/policy/files"
	"egressd/sandbox"
	"egressd/sandbox/process/places"
)

// FilesPlace is the machine to which the rules about files are applied for a run
// of argv with env in dir. Names are without links.
func FilesPlace(argv, env []string, dir string) files.Place {
	pl := files.Place{Workspace: realPath(dir), State: sandbox.AgentState(argv), Login: sandbox.AgentLogin(argv)}
	pl.State = append(pl.State, sandbox.CacheDirs(env)...)
	pl.State = append(pl.State, places.GitDirs(pl.Workspace)...)
	if home := sandbox.EnvValue(env, "HOME"); filepath.IsAbs(home) {
		pl.Home = realPath(home)
	}
	return pl
}

// filesGate is the gate of the run's files: the spec's, or the built-in rules.
func (s *supervisor) filesGate(dir string, argv []string) (*files.Gate, error) {
	if s.spec.Files != nil {
		return s.spec.Files, nil
	}
	return files.Section{}.In(FilesPlace(argv, s.spec.Env, dir))
}

// realPath is path without links, or made clean if it is not there.
func realPath(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return filepath.Clean(path)
}

// decide asks the gate about a file by any of its names.
func (c *config) decide(path string) files.Decision {
	switch {
	case !filepath.IsAbs(path):
		return files.Decision{}
	case slices.Contains(c.Skip, "files"):
		return files.Decision{Access: files.ReadWrite}
	}
	return c.gate.Decide(realPath(path))
}

// namedByRules lists the paths of the rules that a person wrote, except patterns.
func (c *config) namedByRules() []string {
	var out []string
	for i := range c.gate.Anchors() {
		a := &c.gate.Anchors()[i]
		if a.Reason == files.Named && !a.Glob() {
			out = append(out, a.Path)
		}
	}
	return out
}

// planFiles plans the mounts by which the gate's rules hold.
func (c *config) planFiles() error {
	m := places.Machine{Gate: c.gate, Mounts: c.mounts, Roots: c.Plan.Roots, Binds: c.Plan.Binds, Shown: c.Plan.Shown, ReadOnly: c.readOnly, Ahead: c.ahead, Names: c.names}
	plan, err := places.Find(m)
	if err != nil {
		return err
	}
	c.Plan.Places, c.found = plan.Places, plan
	return nil
}

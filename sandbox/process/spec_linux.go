package process

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"

	"egressd/internal/linux/mountinfo"
	"egressd/policy"
	"egressd/sandbox"
	"egressd/sandbox/process/control"
	"egressd/sandbox/process/places"
)

// config says what the init is to set up.
func (s *supervisor) config(stdio [3]*os.File) (*config, error) {
	argv, err := s.spec.CommandLine()
	if err != nil {
		return nil, err
	}
	shown, err := planShown(s.b.Binds)
	if err != nil {
		return nil, err
	}
	dir, err := s.spec.WorkingDirectory(func(path string) bool { return shownAt(path, shown) })
	if err != nil {
		return nil, err
	}
	var ahead *places.Ahead
	if dir != "/" && !s.b.ReadOnly {
		ahead = places.ReadAhead(realPath(dir))
		defer ahead.Close()
	}
	mounts, err := mountinfo.Read() // once a start
	if err != nil {
		return nil, err
	}
	protect, err := s.protected(mounts)
	if err != nil {
		return nil, err
	}
	hidden, err := s.hidden()
	if err != nil {
		return nil, err
	}
	layer, err := s.layer(dir, mounts)
	if err != nil {
		return nil, err
	}
	c := &config{paths: pathValues(s.spec.Env), home: sandbox.EnvValue(s.spec.Env, "HOME"), mounts: mounts, env: s.spec.Env, readOnly: s.b.ReadOnly, names: places.NewNames(), ahead: ahead}
	if c.gate, err = s.filesGate(dir, argv); err != nil {
		return nil, err
	}
	c.Config = control.Config{
		Argv: argv, Dir: dir, Path: sandbox.EnvValue(s.spec.Env, "PATH"),
		TmpDir: absolute(sandbox.EnvValue(s.spec.Env, "TMPDIR")), RuntimeDir: absolute(sandbox.EnvValue(s.spec.Env, "XDG_RUNTIME_DIR")),
		Capture: control.Capture{Mode: s.b.CaptureMode, Ports: s.policy().Ports()},
		Plan:    control.Plan{Shown: shown, Hidden: hidden, Layer: layer}, Protect: protect, CA: s.doors.Bundle(),
		Limits: s.ownLimits(), Nested: s.b.Nested, Learn: s.b.Learn, Skip: s.b.hooks.skipped(),
	}
	for _, p := range s.b.HostPorts {
		if p.Localhost {
			c.Localhost = append(c.Localhost, p.Port)
			c.Capture.Reserved = append(c.Capture.Reserved, p.Port)
		}
	}
	for _, p := range s.b.Publish {
		c.Capture.Reserved = append(c.Capture.Reserved, p.inside())
	}
	c.Foreground = s.tty.foreground
	s.files.unmake = c.makeMissing(s.spec.RunAs)
	s.files.env = c.agentFiles(s.spec.RunAs)
	missed, err := c.plan()
	if missed != "" {
		s.b.log().Warn("a unix socket of this machine could not be found: if it is below the working directory or HOME, the program can reach it",
			slog.String("socket", missed))
	}
	if slices.Contains(c.Plan.Roots, dir) {
		s.b.log().Warn("the working directory is private inside: the program finds it empty and loses what it writes there; start in a directory below it",
			slog.String("dir", dir))
	}
	if c.partial != "" {
		s.b.log().Warn("the program lies in a directory for temporary files, which is private inside: of its installation only this directory is there; install it in a directory of its own",
			slog.String("dir", c.partial))
	}
	return c, err
}

// absolute is path made clean, or "" if it is not absolute: directories are made
// there, and must not end up outside the private roots.
func absolute(path string) string {
	if !filepath.IsAbs(path) {
		return ""
	}
	return filepath.Clean(path)
}

// plan reads the host's file system. missed is as in planMasks.
func (c *config) plan() (missed string, err error) {
	p := &c.Plan
	for _, r := range privateRoots {
		if fi, err := os.Lstat(r); err == nil && fi.IsDir() {
			p.Roots = append(p.Roots, r)
		}
	}
	p.Own, p.Resolv, p.Hosts = runtimeDir(), resolvTarget(), loopbackHosts()
	p.Binds = c.planBinds(p.Roots)
	if err := c.planFiles(); err != nil {
		return "", err
	}
	p.Masks, missed, err = c.planMasks()
	return missed, err
}

// protected lists what the inside may not change: the files of Spec.Protect and
// this program itself. What has no name but in /dev and /proc, which are others
// inside, needs no protection.
func (s *supervisor) protected(mounts mountinfo.Table) ([]control.Guarded, error) {
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return nil, err
	}
	var files []control.Guarded
	if _, err := os.Lstat(self); err == nil { // else it was replaced since, and is not started again
		files = append(files, control.Guarded{File: self})
	}
	uid := uint32(os.Geteuid())
	if s.spec.RunAs != nil {
		uid = s.spec.RunAs.UID
	}
	for _, p := range s.spec.Protect {
		if fi, err := os.Stat(p); err == nil && !fi.Mode().IsRegular() && !fi.IsDir() && nameless(p) {
			continue
		}
		g, err := guard(p, uid, mounts)
		if err != nil {
			return nil, fmt.Errorf("protect: %w", err)
		}
		files = append(files, g)
	}
	return files, nil
}

// nameless reports whether path is a name that leads elsewhere inside, as
// /dev/fd/3 does, which a shell's <(...) makes.
func nameless(path string) bool {
	path, err := filepath.Abs(path)
	return err == nil && (mountinfo.Within(path, "/dev") || mountinfo.Within(path, "/proc"))
}

// hidden lists the directories of Outside.Hide, and Outside.Overlay, by their real names.
func (s *supervisor) hidden() ([]string, error) {
	var dirs []string
	hide := s.b.Outside.Hide
	if o := s.b.Outside.Overlay; o != "" {
		hide = append(slices.Clone(hide), o)
	}
	for _, dir := range hide {
		real, err := filepath.EvalSymlinks(dir)
		if err == nil {
			real, err = filepath.Abs(real)
		}
		if err != nil {
			return nil, fmt.Errorf("hide: %w", err)
		}
		dirs = append(dirs, real)
	}
	return dirs, nil
}

func (s *supervisor) policy() *policy.Policy {
	if s.b.Gate.Policy == nil {
		return nil
	}
	return s.b.Gate.Policy.Load()
}

package process

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"egressd/netns"
	"egressd/policy"
	"egressd/sandbox"
)

// commandLine reports the argv that spec means.
func commandLine(spec sandbox.Spec) ([]string, error) {
	switch {
	case len(spec.Argv) > 0 && spec.Script != "":
		return nil, errors.New("a run has a command or a script, not both")
	case len(spec.Argv) > 0:
		if spec.Argv[0] == "" {
			return nil, errors.New("the program's name is empty")
		}
		return spec.Argv, nil
	case spec.Script == "":
		return nil, errors.New("nothing to run")
	}
	shell := spec.Shell
	if shell == "" {
		shell = "sh"
	}
	if shell != "sh" && shell != "bash" {
		return nil, fmt.Errorf("shell %q: only sh and bash are known", shell)
	}
	return []string{shell, "-c", spec.Script}, nil
}

// standardFiles reports spec's stdin, stdout and stderr, with /dev/null where
// there is none.
func standardFiles(spec sandbox.Spec) (files [3]*os.File, closeNull func(), err error) {
	var null *os.File
	files = [3]*os.File{spec.Stdin, spec.Stdout, spec.Stderr}
	for i, f := range files {
		if f != nil {
			continue
		}
		if null == nil {
			if null, err = os.OpenFile(os.DevNull, os.O_RDWR, 0); err != nil {
				return files, nil, err
			}
		}
		files[i] = null
	}
	return files, func() {
		if null != nil {
			null.Close()
		}
	}, nil
}

// workingDirectory reports the absolute directory that the harness starts in.
func workingDirectory(spec sandbox.Spec) (string, error) {
	dir, err := filepath.Abs(spec.Dir)
	if err != nil {
		return "", err
	}
	if fi, err := os.Stat(dir); err != nil {
		return "", fmt.Errorf("working directory: %w", err)
	} else if !fi.IsDir() {
		return "", fmt.Errorf("working directory %s: not a directory", dir)
	}
	return dir, nil
}

// config says what the init is to set up.
func (s *session) config(stdio [3]*os.File) (*config, error) {
	argv, err := commandLine(s.spec)
	if err != nil {
		return nil, err
	}
	dir, err := workingDirectory(s.spec)
	if err != nil {
		return nil, err
	}
	protect, err := s.protected()
	if err != nil {
		return nil, err
	}
	c := &config{
		Argv: argv, Paths: pathValues(s.spec.Env), Dir: dir,
		Path: envValue(s.spec.Env, "PATH"), Home: envValue(s.spec.Env, "HOME"),
		TmpDir: envValue(s.spec.Env, "TMPDIR"), RuntimeDir: envValue(s.spec.Env, "XDG_RUNTIME_DIR"),
		UserNS:  s.child.userNS,
		Capture: netns.Capture{Mode: netns.Mode(s.b.CaptureMode), Ports: s.policy().Ports()},
		Protect: protect, CA: s.gate.bundle,
		Terminal: terminalPath(stdio), Controls: s.tty != nil,
		Processes: cmp.Or(s.b.hooks.processes, maxProcesses), Skip: s.b.hooks.skip,
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
	if isTerminal(stdio[0]) && isTerminal(stdio[1]) && s.tty.owned() {
		c.Foreground, s.tty.granted = true, true
	}
	return c, c.plan()
}

// plan looks at the host's file system.
func (c *config) plan() error {
	p := &c.Plan
	for _, r := range privateRoots {
		if fi, err := os.Lstat(r); err == nil && fi.IsDir() {
			p.Roots = append(p.Roots, r)
		}
	}
	p.Resolv, p.Hosts = resolvTarget(), loopbackHosts()
	p.Devices = planDevices(c.Terminal)
	p.Binds = c.planBinds(p.Roots)
	var err error
	p.Masks, err = c.planMasks()
	return err
}

// protected lists what the inside may not change: what the caller named and
// the launcher itself.
func (s *session) protected() ([]string, error) {
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return nil, err
	}
	paths := []string{self}
	for _, p := range s.b.Protect {
		abs, err := filepath.Abs(p)
		if err != nil {
			return nil, err
		}
		if _, err := os.Stat(abs); err != nil {
			return nil, fmt.Errorf("protect: %w", err)
		}
		paths = append(paths, abs)
	}
	return paths, nil
}

func (s *session) policy() *policy.Policy {
	if s.b.Policy == nil {
		return nil
	}
	return s.b.Policy.Load()
}

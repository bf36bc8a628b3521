package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// contestant is one way to run a program.
type contestant struct {
	name    string
	program string // nothing for the control
	version string
	// config is the settings file's name below HOME, and its content.
	config, content string
	// args come between the program and the command.
	args func(w *world) []string
	// before is a directory in front of PATH; "" for none.
	before string
	search string // the rest of PATH
}

const (
	// Of srt's README, "Complete Configuration Example", without hosts that are not there. The address is there
	// because srt refuses names that lead to this machine, as the laboratory's do.
	srtSettings = `{"network": {"allowedDomains": ["allowed.test:80", "allowed.test:443", "rebind.test", "203.0.113.80:80", "203.0.113.80:443"], "deniedDomains": []},
 "filesystem": {"denyRead": ["~/.ssh"], "allowRead": [], "allowWrite": [".", "/tmp"], "denyWrite": [".env"]}}`
	// Of the same page, "Workspace-only filesystem access".
	srtHiddenSettings = `{"network": {"allowedDomains": ["allowed.test:80", "allowed.test:443", "rebind.test", "203.0.113.80:80", "203.0.113.80:443"], "deniedDomains": []},
 "filesystem": {"denyRead": ["~"], "allowRead": ["."], "allowWrite": ["."], "denyWrite": []}}`
	// Of fence's page about agents, and its template for them.
	fenceSettings = `{"network": {"allowedDomains": ["allowed.test", "rebind.test"]}, "filesystem": {"allowWrite": ["."]}}`
)

// clientSettings are for real clients: one allowed host, and what each needs for all of its ports. srt and fence
// have the address besides, for the reason above.
var clientSettings = map[string]string{
	ours:      "allow: ['allowed.test:" + clientPorts + "']\nhosts:\n  allowed.test: 203.0.113.80\n",
	srt:       `{"network": {"allowedDomains": ["allowed.test", "203.0.113.80"], "deniedDomains": []}, "filesystem": {"denyRead": [], "allowRead": [], "allowWrite": [".", "/tmp"], "denyWrite": []}}`,
	variables: "allow: ['allowed.test:" + clientPorts + "']\nhosts:\n  allowed.test: 203.0.113.80\n",
	fence:     `{"network": {"allowedDomains": ["allowed.test", "203.0.113.80"]}, "filesystem": {"allowWrite": [".", "/tmp"]}}`,
}

func contestants(c config) []*contestant {
	return []*contestant{
		{name: without},
		{
			name: ours, program: c.launch, config: "egress.yaml",
			content: "allow: [allowed.test, rebind.test, echo.test]\nhosts:\n  allowed.test: 203.0.113.80\n  echo.test: 203.0.113.81\n" +
				"secrets:\n  - env: API_TOKEN\n    header: Authorization\n    hosts: [echo.test]\n",
			args: func(w *world) []string {
				return []string{"--policy", w.settings, "--events", w.events, "--"}
			},
		},
		{
			name: srt, program: c.srt, config: ".srt-settings.json", content: srtSettings,
			args: func(*world) []string { return nil },
		},
		{
			name: srtHidden, program: c.srt, config: ".srt-settings.json", content: srtHiddenSettings,
			args: func(*world) []string { return nil },
		},
		{
			name: fence, program: c.fence, config: ".fence.json", content: fenceSettings,
			args: func(*world) []string { return []string{"-m", "--"} },
		},
	}
}

// helpProbe gives fence a bwrap in front of the real one. fence 0.1.5 finds out whether it can make a network
// namespace by running /bin/true in an empty root, where there is none: without help it isolates
// no network at all. The other calls of bwrap are handed on as they are.
func (c *contestant) helpProbe(dir string) error {
	real, err := exec.LookPath("bwrap")
	if err != nil {
		return err
	}
	c.before = filepath.Join(dir, "before")
	script := "#!/bin/sh\nif [ \"$*\" = '--unshare-net -- /bin/true' ]; then exec " + real + " --ro-bind / / \"$@\"; fi\nexec " + real + " \"$@\"\n"
	if err := os.Mkdir(c.before, 0o755); err != nil { // #nosec: others run what is in it
		return err
	}
	return os.WriteFile(filepath.Join(c.before, "bwrap"), []byte(script), 0o755) // #nosec: a program
}

// path is the contestant's PATH.
func (c *contestant) path() string {
	if c.before == "" {
		return c.search
	}
	return c.before + ":" + c.search
}

// find leaves out who is not here, with the reason.
func find(ctx context.Context, all []*contestant) (here []*contestant, missing []string) {
	for _, c := range all {
		if c.name == without {
			here = append(here, c)
			continue
		}
		path, err := exec.LookPath(c.program)
		if err == nil {
			path, err = filepath.Abs(path)
		}
		if err != nil {
			missing = append(missing, c.name+": "+err.Error())
			continue
		}
		c.program, c.version = path, versionOf(ctx, path)
		here = append(here, c)
	}
	return here, missing
}

var number = regexp.MustCompile(`v?[0-9]+\.[0-9]+[-.0-9a-z+]*`)

// versionOf asks the program, else the build record of a Go program.
func versionOf(ctx context.Context, path string) string {
	for _, args := range [][]string{{path, "--version"}, {"go", "version", "-m", path}} {
		text, err := exec.CommandContext(ctx, args[0], args[1:]...).Output()
		if err != nil {
			continue
		}
		for _, line := range strings.Split(string(text), "\n") {
			f := strings.Fields(line)
			if args[0] == "go" && (len(f) < 3 || f[0] != "mod") {
				continue
			}
			if v := number.FindString(line); v != "" {
				return v
			}
		}
	}
	return ""
}

// tempForSrt makes the directory that srt names to programs for temporary files, and does not make.
func tempForSrt(w *world) error {
	const dir = "/tmp/claude"
	err := os.Mkdir(dir, 0o700)
	if errors.Is(err, os.ErrExist) {
		return nil
	}
	w.atEnd(func() { os.RemoveAll(dir) })
	return errors.Join(err, os.Chown(dir, w.uid, w.gid))
}

// argv is the script under the contestant; it writes the settings first.
func (c *contestant) argv(w *world, script string) ([]string, error) {
	if c.name == srt || c.name == srtHidden {
		if err := tempForSrt(w); err != nil {
			return nil, err
		}
	}
	w.settings = filepath.Join(w.home, c.config)
	if c.name == without {
		w.settings = filepath.Join(w.home, "settings.yaml")
	}
	err := errors.Join(
		put(filepath.Dir(w.settings), filepath.Base(w.settings), c.content), os.Chown(w.settings, w.uid, w.gid),
		put(w.base, "script", "exec 2>&1\necho BEGIN\ncd "+w.ws+"\n"+w.replace(script)+"\n"),
		os.Chown(filepath.Join(w.base, "script"), w.uid, w.gid),
	)
	command := []string{"/bin/sh", filepath.Join(w.base, "script")}
	if c.name == without {
		return command, err
	}
	return append(append([]string{c.program}, c.args(w)...), command...), err
}

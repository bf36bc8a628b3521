package process

import (
	"slices"
	"strings"

	"egressd/internal/linux/mountinfo"
	"egressd/policy/files"
	"egressd/sandbox/process/control"
	"egressd/sandbox/process/places"
)

// config is the configuration of the init, and what only its planning needs.
type config struct {
	control.Config
	paths  []string        // values of the environment that may name files, see named
	home   string          // the program's HOME; "": none
	mounts mountinfo.Table // of this process

	names    *places.Names   // what was found out about names
	ahead    *places.Ahead   // what was read of the working directory
	programs []string        // the directories of PATH, each once; nil: not asked for yet
	commands map[string]bool // what installed found
	env      []string        // of the spec
	gate     *files.Gate     // which files the program may read and write
	readOnly bool            // Backend.ReadOnly
	found    *places.Plan    // what the rules are about here
	partial  string          // the bin directory of the program, where it is all that is brought in; "": it is whole
}

// needsHidden reports whether something is to be brought back that lies behind
// a link into what an init hides first.
func (c *config) needsHidden() bool {
	return slices.ContainsFunc(append(slices.Clone(c.Plan.Binds), c.Plan.Shown...), func(b control.Bind) bool {
		return mountinfo.Within(b.Source, "/dev") || mountinfo.Within(b.Source, "/proc") || mountinfo.Within(b.Source, "/sys")
	})
}

// pathValues lists the values of env that may name files: every absolute path,
// including entries of a list such as PATH. Directories for temporary files do not
// count: they are made anew inside.
func pathValues(env []string) []string {
	var out []string
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		if slices.Contains([]string{"TMPDIR", "TMP", "TEMP", "XDG_RUNTIME_DIR", "PWD", "OLDPWD"}, name) {
			continue
		}
		if strings.HasPrefix(value, "/") {
			for _, p := range strings.Split(value, ":") {
				if strings.HasPrefix(p, "/") {
					out = append(out, p)
				}
			}
		}
	}
	return out
}

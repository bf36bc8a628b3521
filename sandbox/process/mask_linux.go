package process

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"egressd/internal/linux/mountinfo"
	"egressd/sandbox/process/control"
)

// knownSocketDirs are places under a home directory for sockets whose servers
// may live in another network namespace (a container, a virtual machine's
// helper), where /proc/net/unix does not show them.
var knownSocketDirs = []string{
	".gnupg", ".ssh", ".docker", ".colima", ".config/colima", ".lima", ".rd", ".orbstack",
	".local/share/containers/podman", ".minikube", ".vscode-server", ".emacs.d/server", ".tmux", ".screen",
}

// Bounds of the search for sockets.
const (
	searchDepth   = 3
	searchEntries = 1024 // in one directory
)

// leadsOut reports whether somebody outside may be at the other end of a file.
func leadsOut(mode fs.FileMode) bool { return mode == fs.ModeSocket || mode == fs.ModeNamedPipe }

// means reports whether the person names the FIFO at path, without links, in argv,
// in the environment or in a rule about files: then it is for the program.
func (c *config) means(path string) bool {
	return slices.ContainsFunc(append(c.named(), c.namedByRules()...), func(name string) bool { return realPath(name) == path })
}

// socketsBelow lists the sockets and FIFOs in dir, and depth-1 levels further down.
func socketsBelow(dir string, depth int) []string {
	f, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer f.Close()
	entries, _ := f.ReadDir(searchEntries) // what could be read counts
	var out []string
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		switch {
		case leadsOut(e.Type()):
			out = append(out, path)
		case e.IsDir() && depth > 1:
			out = append(out, socketsBelow(path, depth-1)...)
		}
	}
	return out
}

// planMasks lists every path by which a socket of the host could still be reached
// once the private roots are in place. missed names a socket that may be below the
// working directory or HOME and was not found; "": there is none.
//
// Threat: a socket was bound by a relative path, or the directory above it was
// renamed since (by the program, in an earlier run), so that the path that the
// kernel knows leads nowhere -> then the places that the program may write are
// searched for sockets. Left over: a tree too large to be searched, of which the
// run warns.
//
// Threat: a FIFO has its reader outside -> those that the same looks find are
// masked, unless the person names them. Left over: FIFOs deeper in the working
// directory or in HOME, and those that are made later.
func (c *config) planMasks() (masks []string, missed string, err error) {
	sockets, err := hostSockets()
	if err != nil {
		return nil, "", err
	}
	searched := c.searched()
	devices := c.mounts.Devices(searched)
	var paths []string
	for _, s := range sockets {
		if filepath.IsAbs(s.path) {
			paths = append(paths, s.path)
		}
		if missed == "" && (s.device == "" || devices[s.device]) && !s.inPlace() {
			missed = s.path
		}
	}
	if missed != "" {
		found, whole := searchSockets(searched)
		paths = append(paths, found...)
		if whole {
			missed = ""
		}
	}
	for _, dir := range knownSocketDirs {
		if c.home != "" {
			paths = append(paths, socketsBelow(filepath.Join(c.home, dir), searchDepth)...)
		}
	}
	paths = append(paths, socketsBelow(c.Dir, 1)...)
	for _, b := range append(slices.Clone(c.Plan.Binds), c.Plan.Shown...) {
		if b.Dir {
			paths = append(paths, socketsBelow(b.Source, 2)...)
		}
	}
	return c.reachable(paths), missed, nil
}

// searched lists the directories in which this user's sockets may be.
func (c *config) searched() []string {
	var dirs []string
	for _, dir := range []string{c.Dir, c.home} {
		if filepath.IsAbs(dir) && filepath.Clean(dir) != "/" && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	for _, b := range c.Plan.Binds {
		if b.Dir && !slices.Contains(dirs, b.Path) {
			dirs = append(dirs, b.Path)
		}
	}
	for _, b := range c.Plan.Shown {
		if b.Dir && !slices.Contains(dirs, b.Source) {
			dirs = append(dirs, b.Source)
		}
	}
	return dirs
}

// reachable lists the names of the sockets among paths that are not behind a
// private root.
func (c *config) reachable(paths []string) []string {
	seen := map[string]bool{}
	var out []string
	for _, path := range paths {
		real, err := filepath.EvalSymlinks(path)
		if err != nil {
			continue
		}
		fi, err := os.Lstat(real)
		if err != nil || !leadsOut(fi.Mode().Type()) || fi.Mode().Type() == fs.ModeNamedPipe && c.means(real) {
			continue
		}
		// A path that leads through a link counts under both names: a bind may
		// have brought the link's name back as a directory.
		aliases := append(c.mounts.Aliases(real), real, filepath.Clean(path))
		for _, b := range c.Plan.Binds {
			if mountinfo.Within(real, b.Source) {
				aliases = append(aliases, b.Path+strings.TrimPrefix(real, b.Source))
			}
		}
		aliases = slices.DeleteFunc(aliases, func(a string) bool {
			return below(a, c.Plan.Roots) && !c.broughtBack(a) || shownAt(a, c.Plan.Shown)
		})
		for _, b := range c.Plan.Shown {
			if mountinfo.Within(real, b.Source) {
				aliases = append(aliases, b.Path+strings.TrimPrefix(real, b.Source))
			}
		}
		for _, alias := range aliases {
			if !seen[alias] {
				seen[alias] = true
				out = append(out, alias)
			}
		}
	}
	return out
}

func (c *config) broughtBack(path string) bool {
	return slices.ContainsFunc(c.Plan.Binds, func(b control.Bind) bool { return mountinfo.Within(path, b.Path) })
}

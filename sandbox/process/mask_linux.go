package process

import (
	"bufio"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// maxSockets bounds how many sockets are masked. More than this many live
// sockets outside the private roots is not a machine this was made for: the
// run is refused.
const maxSockets = 4096

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

// socketsBelow lists the sockets in dir, and depth-1 levels further down.
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
		case e.Type() == fs.ModeSocket:
			out = append(out, path)
		case e.IsDir() && depth > 1:
			out = append(out, socketsBelow(path, depth-1)...)
		}
	}
	return out
}

// planMasks lists every path by which a socket of the host could still be
// reached once the private roots are in place. missed names a socket that may
// be somewhere below the working directory or HOME and was not found; "" none.
//
// Threat: a socket was bound by a relative path, or the directory above it was
// renamed since (by the harness, in an earlier run), so that the path that the
// kernel knows leads nowhere -> then the places that the harness may write are
// searched for sockets. Left over: a tree too large to be searched, which the
// run says.
func (c *config) planMasks() (masks []string, missed string, err error) {
	sockets, err := hostSockets()
	if err != nil {
		return nil, "", err
	}
	mounts, err := readMounts()
	if err != nil {
		return nil, "", err
	}
	searched := c.searched()
	devices := mounts.devices(searched)
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
		if c.Home != "" {
			paths = append(paths, socketsBelow(filepath.Join(c.Home, dir), searchDepth)...)
		}
	}
	paths = append(paths, socketsBelow(c.Dir, 1)...)
	for _, b := range c.Plan.Binds {
		if b.Dir {
			paths = append(paths, socketsBelow(b.Path, 2)...)
		}
	}
	return c.reachable(paths, mounts), missed, nil
}

// searched lists the directories that may hold sockets of this person.
func (c *config) searched() []string {
	var dirs []string
	for _, dir := range []string{c.Dir, c.Home} {
		if filepath.IsAbs(dir) && filepath.Clean(dir) != "/" && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	for _, b := range c.Plan.Binds {
		if b.Dir && !slices.Contains(dirs, b.Path) {
			dirs = append(dirs, b.Path)
		}
	}
	return dirs
}

// reachable lists the names of the sockets among paths that are not behind a
// private root.
func (c *config) reachable(paths []string, mounts mountTable) []string {
	seen := map[string]bool{}
	var out []string
	for _, path := range paths {
		real, err := filepath.EvalSymlinks(path)
		if err != nil {
			continue
		}
		if fi, err := os.Lstat(real); err != nil || fi.Mode().Type() != fs.ModeSocket {
			continue
		}
		// A path that leads through a link counts under both names: a bind may
		// have brought the link's name back as a directory.
		aliases := append(mounts.aliases(real), real, filepath.Clean(path))
		for _, b := range c.Plan.Binds {
			if within(real, b.Source) {
				aliases = append(aliases, b.Path+strings.TrimPrefix(real, b.Source))
			}
		}
		for _, alias := range aliases {
			if !seen[alias] && (!below(alias, c.Plan.Roots) || c.broughtBack(alias)) {
				seen[alias] = true
				out = append(out, alias)
			}
		}
	}
	return out
}

func (c *config) broughtBack(path string) bool {
	return slices.ContainsFunc(c.Plan.Binds, func(b bind) bool { return within(path, b.Path) })
}

// maskSockets hides every planned socket that can still be seen behind an
// empty file that nobody may open: connecting to it is refused.
func (in *initProcess) maskSockets(*picked) error {
	if len(in.cfg.Plan.Masks) > maxSockets {
		return errors.New("too many unix sockets outside /tmp and /run to hide them all")
	}
	var mask string
	for _, path := range in.cfg.Plan.Masks {
		if fi, err := os.Lstat(path); err != nil || fi.Mode().Type() != fs.ModeSocket {
			continue // behind a private root, or gone
		}
		if mask == "" {
			mask = "/dev/.masked"
			if err := os.WriteFile(mask, nil, 0o000); err != nil {
				return err
			}
		}
		if err := bindOver(mask, path, true); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if mask == "" {
		return nil
	}
	return os.Remove(mask)
}

// mountEntry is one line of /proc/self/mountinfo.
type mountEntry struct {
	device string // major:minor
	root   string // the directory of the file system that is mounted
	point  string // where
}

type mountTable []mountEntry

func readMounts() (mountTable, error) {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var t mountTable
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		w := strings.Fields(sc.Text())
		if len(w) < 5 {
			continue
		}
		t = append(t, mountEntry{device: w[2], root: unescapeMount(w[3]), point: unescapeMount(w[4])})
	}
	return t, sc.Err()
}

// unescapeMount undoes the octal escapes of mountinfo.
func unescapeMount(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}

// devices lists the devices of the file systems that hold dirs, or are mounted
// below them.
func (t mountTable) devices(dirs []string) map[string]bool {
	out := map[string]bool{}
	for _, dir := range dirs {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			dir = real
		}
		home := ""
		for _, m := range t { // the innermost, and of those the uppermost, is last
			if within(m.point, dir) {
				out[m.device] = true
			}
			if within(dir, m.point) && len(m.point) >= len(home) {
				home = m.point
			}
		}
		for _, m := range t {
			if m.point == home {
				out[m.device] = true
			}
		}
	}
	return out
}

func deviceName(major, minor uint32) string {
	return strconv.Itoa(int(major)) + ":" + strconv.Itoa(int(minor))
}

// aliases lists the other paths by which the file at path can be reached,
// because its file system is mounted in more than one place.
func (t mountTable) aliases(path string) []string {
	var st unix.Stat_t
	if unix.Lstat(path, &st) != nil {
		return nil
	}
	var home *mountEntry
	for i := range t {
		if within(path, t[i].point) && (home == nil || len(t[i].point) >= len(home.point)) {
			home = &t[i]
		}
	}
	if home == nil {
		return nil
	}
	inner := filepath.Join(home.root, strings.TrimPrefix(path, home.point))
	var out []string
	for _, m := range t {
		if m.device != home.device || !within(inner, m.root) {
			continue
		}
		alias := filepath.Join(m.point, strings.TrimPrefix(inner, m.root))
		var other unix.Stat_t
		if alias != path && unix.Lstat(alias, &other) == nil && other.Ino == st.Ino && other.Dev == st.Dev {
			out = append(out, alias)
		}
	}
	return out
}

// within reports whether path is dir or lies below it.
func within(path, dir string) bool {
	return dir == "/" || path == dir || strings.HasPrefix(path, dir+"/")
}

package process

import (
	"bufio"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// maxSockets bounds how many sockets are masked. More than this many live
// sockets outside the private roots is not a machine this was made for: the
// run is refused.
const maxSockets = 4096

// hostSockets lists the pathname sockets that this network namespace knows.
func hostSockets() ([]string, error) {
	f, err := os.Open("/proc/net/unix")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	seen := map[string]bool{}
	var paths []string
	sc := bufio.NewScanner(f)
	for sc.Scan() {
		// Num RefCount Protocol Flags Type St Inode Path
		i := strings.Index(sc.Text(), " /")
		if i < 0 {
			continue
		}
		path := filepath.Clean(sc.Text()[i+1:])
		if !seen[path] {
			seen[path] = true
			paths = append(paths, path)
		}
	}
	return paths, sc.Err()
}

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
// reached once the private roots are in place.
func (c *config) planMasks() ([]string, error) {
	paths, err := hostSockets()
	if err != nil {
		return nil, err
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
	var mounts mountTable
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
		if mounts == nil {
			if mounts, err = readMounts(); err != nil {
				return nil, err
			}
		}
		// A path that leads through a link counts under both names: a bind may
		// have brought the link's name back as a directory.
		for _, alias := range append(mounts.aliases(real), real, path) {
			if !seen[alias] {
				seen[alias] = true
				out = append(out, alias)
			}
		}
	}
	return out, nil
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

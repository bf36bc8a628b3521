package latecomers

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"egressd/internal/linux/inotify"
	"egressd/policy/files"
	"egressd/sandbox/process/places"
)

func descriptor(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

// events handles what the kernel reports.
func (g *Guard) events(b []byte) {
	for e := range inotify.Events(b) {
		mask, name := e.Mask, string(e.Name)
		if mask&unix.IN_Q_OVERFLOW != 0 {
			g.everything()
			continue
		}
		w := g.byWD[e.WD]
		switch {
		case w == nil:
		case mask&unix.IN_IGNORED != 0:
			delete(g.byWD, e.WD)
			if g.byPath[w.path] == w {
				delete(g.byPath, w.path)
			}
		case name == "":
		case mask&unix.IN_MOVED_FROM != 0:
			if mask&unix.IN_ISDIR != 0 {
				g.forget(filepath.Join(w.path, name))
			}
		default:
			g.judge(w, name, mask&unix.IN_ISDIR != 0)
		}
	}
}

// everything looks at all directories again: the kernel's queue was too short.
func (g *Guard) everything() {
	for path, w := range g.byPath {
		g.look(path, w.depth, true)
	}
}

// judge handles a new name in a directory.
func (g *Guard) judge(w *watched, name string, dir bool) {
	path := filepath.Join(w.path, name)
	if g.Plan.Known[path] {
		return
	}
	if w.hollow != nil {
		g.aside(filepath.Dir(w.path), filepath.Base(w.path), *w.hollow)
		return
	}
	if v := g.verdict(w.path, name); v.refused {
		if !dir || slices.Contains(layout, name) || !g.leaveHollow(path, v.decision) { // git takes an empty one, too
			g.aside(w.path, name, v.decision)
		}
		return
	}
	if !dir {
		return
	}
	if newRepository(path) {
		g.scan(path, 0)
		return
	}
	if gitData(name) && (inGit(w.path) || laidOut(w.path)) {
		return
	}
	if name == "hooks" && laidOut(w.path) {
		g.scan(path, places.MaxDepth)
		return
	}
	if !places.Skipped(name) && w.depth < places.MaxDepth {
		g.scan(path, w.depth+1)
	}
}

// leaveHollow watches a refused directory, which is moved away with the first
// thing that comes into it. False: it cannot be watched.
func (g *Guard) leaveHollow(path string, d files.Decision) bool {
	if !g.watch(path, places.MaxDepth) {
		return false
	}
	g.byPath[path].hollow = &d
	g.look(path, places.MaxDepth, false)
	return true
}

// scan watches a new directory, and looks at what is in it already.
func (g *Guard) scan(dir string, depth int) {
	if g.watch(dir, depth) {
		g.look(dir, depth, false)
	}
}

// look judges what is in dir. since: only what was changed since the guard began;
// what was there before is the person's.
func (g *Guard) look(dir string, depth int, since bool) {
	d, err := openDir(dir)
	if err != nil {
		return
	}
	f, err := os.Open(descriptor(d))
	unix.Close(d)
	if err != nil {
		return
	}
	entries, _ := f.ReadDir(maxEntries) // what could be read counts
	w := &watched{path: dir, depth: depth}
	if known := g.byPath[dir]; known != nil {
		w.hollow = known.hollow
	}
	for _, e := range entries {
		name := e.Name()
		if since && w.hollow == nil && (!g.matters(dir, name, e.IsDir()) || !g.new(int(f.Fd()), name)) {
			continue
		}
		g.judge(w, name, e.IsDir())
		if w.hollow != nil {
			break // it went with its first entry
		}
	}
	f.Close()
}

// matters reports whether a name can be protected, or is a directory that is not
// watched.
func (g *Guard) matters(dir, name string, isDir bool) bool {
	return g.names.last[name] || g.names.globs || name == ".git" || inGit(dir) || ofRepository(dir, name) || isDir && g.byPath[filepath.Join(dir, name)] == nil
}

// new reports whether name was made, renamed or changed since the guard began.
func (g *Guard) new(dir int, name string) bool {
	var st unix.Stat_t
	if unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return false
	}
	return !time.Unix(st.Ctim.Unix()).Before(g.started.Add(-tick))
}

// verdict is what becomes of a new name.
type verdict struct {
	refused  bool
	decision files.Decision
}

func (g *Guard) verdict(dir, name string) verdict {
	path := filepath.Join(dir, name)
	if name == "commondir" && inGit(dir) && filepath.Base(filepath.Dir(dir)) == "worktrees" {
		return linkedVerdict(path)
	}
	if repo, rel, ok := g.inNewRepository(path); ok {
		return g.gitVerdict(repo, rel, path)
	}
	if name == ".git" {
		return g.gitEntry(path)
	}
	if v, ok := g.bareVerdict(dir, name); ok {
		return v
	}
	if !g.names.last[name] && !g.names.globs {
		return verdict{}
	}
	if g.Gate.Decide(dir).Access < files.ReadWrite {
		return verdict{} // not the program's to make
	}
	d := g.Gate.Decide(path)
	return verdict{d.Access < files.ReadWrite, d}
}

// aside moves a name out of the program's reach.
//
// Threat: the program puts a link in the place of a directory on the way, so that
// something of the person's is moved -> every directory is opened without
// following links, and the name is moved by descriptors. Left over: a file that
// the person makes under such a name while the run is on is moved as well; it is
// told, and kept.
func (g *Guard) aside(dir, name string, decision files.Decision) {
	r := Refusal{Path: filepath.Join(dir, name), Decision: decision}
	g.forget(r.Path)
	from, err := openDir(dir)
	if err != nil {
		return // gone with its directory
	}
	defer unix.Close(from)
	g.moved++
	r.To, r.Err = g.move(from, dir, name)
	if errors.Is(r.Err, fs.ErrNotExist) {
		return // gone already
	}
	g.Refused(r)
}

// maxTries bounds the search for a name that is free.
const maxTries = 1000

func (g *Guard) move(from int, dir, name string) (to string, err error) {
	if g.Aside != "" {
		to = filepath.Join(g.Aside, strconv.Itoa(g.moved)+"-"+strings.TrimLeft(name, "."))
		err = os.MkdirAll(g.Aside, 0o700)
		if err == nil {
			err = unix.Renameat2(from, name, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
		}
		if err == nil || errors.Is(err, unix.ENOENT) {
			return to, err
		}
	}
	for i := range maxTries {
		plain := name + ".refused-" + strconv.Itoa(g.moved+i)
		err = unix.Renameat2(from, name, from, plain, unix.RENAME_NOREPLACE)
		if !errors.Is(err, unix.EEXIST) {
			return filepath.Join(dir, plain), err
		}
	}
	return "", err
}

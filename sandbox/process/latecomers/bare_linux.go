package latecomers

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"egressd/policy/files"
)

// Threat: the program lays a directory out as a git directory (HEAD, objects, refs)
// whose configuration or hooks run a command, and a person's prompt asks git for
// the state of that directory: git looks there before it looks further up -> what
// git would obey in such a directory is judged like that of a new .git; if that is
// the person's, the name goes that made it a git directory. Directories of this
// kind that are there at the start are protected by mounts (package places). Left
// over: the moment until the name has gone, and what lies deeper than is watched
// (safe.bareRepository=explicit ends both).

// layout are the names that make any directory one for git.
var layout = []string{"HEAD", "objects", "refs"}

// obeyed are the names in it by which git runs something.
var obeyed = []string{"config", "config.worktree", "commondir", "hooks"}

// ofRepository reports whether a directory of that name may be part of what git
// obeys.
func ofRepository(dir, name string) bool {
	return slices.Contains(layout, name) || slices.Contains(obeyed, name) || filepath.Base(dir) == "hooks"
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// laidOut reports whether git takes dir, which is not called .git, for a git
// directory: with a file commondir the rest may be elsewhere.
func laidOut(dir string) bool {
	if inGit(dir) || !exists(dir+"/HEAD") {
		return false
	}
	return exists(dir+"/objects") && exists(dir+"/refs") || exists(dir+"/commondir")
}

// bareVerdict judges a new name in a directory that is not in one called .git;
// false: git does not care about it.
func (g *Guard) bareVerdict(dir, name string) (verdict, bool) {
	path := filepath.Join(dir, name)
	switch {
	case slices.Contains(layout, name):
		if !laidOut(dir) {
			return verdict{}, false
		}
		g.mark(dir)
		return g.poisoned(dir), true
	case slices.Contains(obeyed, name):
		if !laidOut(dir) {
			return verdict{}, false
		}
		g.mark(dir)
		if name == "commondir" {
			return bareLink(path), true
		}
		return g.gitVerdict(dir, name, path), true
	case filepath.Base(dir) == "hooks" && laidOut(filepath.Dir(dir)):
		return g.gitVerdict(filepath.Dir(dir), "hooks/"+name, path), true
	}
	return verdict{}, false
}

// bareLink judges commondir: in a linked worktree's directory, it names the
// repository which that lies in, and elsewhere git writes none.
func bareLink(path string) verdict {
	trees := filepath.Dir(filepath.Dir(path))
	if filepath.Base(trees) == "worktrees" && laidOut(filepath.Dir(trees)) {
		return linkedVerdict(path)
	}
	return refuse("**/.git/commondir")
}

// poisoned moves away what git would obey in dir from now on and the program made. If
// something is left, which is the person's, the verdict is on what made dir a git
// directory.
func (g *Guard) poisoned(dir string) (left verdict) {
	for _, name := range obeyed {
		path := filepath.Join(dir, name)
		if g.Plan.Known[path] || !exists(path) {
			continue
		}
		v := verdict{}
		switch name {
		case "commondir":
			v = bareLink(path)
		case "hooks":
			if v = g.gitVerdict(dir, name, path); !v.refused {
				v = g.poisonedHooks(path)
				if v.refused {
					left = v
				}
				continue
			}
		default:
			v = g.gitVerdict(dir, name, path)
		}
		if v.refused && !g.take(dir, name, v.decision) {
			left = v
		}
	}
	return left
}

// poisonedHooks is poisoned for a directory of hooks.
func (g *Guard) poisonedHooks(dir string) (left verdict) {
	entries, _ := os.ReadDir(dir) // what could be read counts
	for _, e := range entries {
		v := refuse("**/.git/hooks")
		if !strings.HasSuffix(e.Name(), ".sample") && !g.take(dir, e.Name(), v.decision) {
			left = v
		}
	}
	return left
}

// take moves a name away if it is new.
func (g *Guard) take(dir, name string, decision files.Decision) bool {
	d, err := openDir(dir)
	if err != nil {
		return false
	}
	defer unix.Close(d)
	if !g.new(d, name) {
		return false
	}
	g.aside(dir, name, decision)
	return true
}

// mark has the content of files in dir looked at as well: one that is never closed
// is obeyed, too.
func (g *Guard) mark(dir string) {
	w := g.byPath[dir]
	if w == nil || w.repository {
		return
	}
	w.repository = true
	if g.in != nil {
		g.notice(w)
	}
}

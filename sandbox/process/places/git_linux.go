package places

import (
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"egressd/policy/files"
)

// gitRuns are the names in a git directory that git obeys, whatever that
// directory is called.
var gitRuns = []string{"hooks", "config", "config.worktree", "info/attributes", "commondir", "gitdir"}

// gitLayout are the names that make a directory one for git, which looks at the
// directory that it is started in before it looks for .git further up.
var gitLayout = [...]string{"HEAD", "objects", "refs"}

func laysOut(name []byte) bool {
	switch string(name) { // compared without an allocation
	case gitLayout[0], gitLayout[1], gitLayout[2]:
		return true
	}
	return false
}

// maxGitFile bounds a .git file and the files it leads to, in bytes.
const maxGitFile = 64 << 10

// GitDirs reports the directories outside dir that git in dir must write: of a
// linked worktree its own and the common one, of a submodule its own. Nil: there
// are none.
//
// Threat: a program leaves a .git file that names a directory of the person's, so
// that the next run may write it -> the named directory must name dir in turn,
// which git sees to and no program inside can. Left over: none known.
func GitDirs(dir string) []string {
	target, ok := gitLine(filepath.Join(dir, ".git"), "gitdir: ")
	if !ok {
		return nil
	}
	own, err := filepath.EvalSymlinks(from(dir, target))
	if err != nil {
		return nil
	}
	if back, ok := gitLine(filepath.Join(own, "gitdir"), ""); ok {
		common, ok := gitLine(filepath.Join(own, "commondir"), "")
		if !ok || !same(from(own, back), filepath.Join(dir, ".git")) {
			return nil
		}
		shared, err := filepath.EvalSymlinks(from(own, common))
		if err != nil || filepath.Dir(own) != filepath.Join(shared, "worktrees") {
			return nil
		}
		return []string{shared} // own lies in it
	}
	if tree, ok := gitWorktree(filepath.Join(own, "config")); ok && same(from(own, tree), dir) {
		return []string{own}
	}
	return nil
}

// gitLine reads a file of one line.
func gitLine(path, prefix string) (string, bool) {
	fi, err := os.Lstat(path)
	if err != nil || !fi.Mode().IsRegular() || fi.Size() > maxGitFile {
		return "", false
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return "", false
	}
	line, ok := strings.CutPrefix(strings.TrimRight(string(data), "\n"), prefix)
	return line, ok && line != "" && !strings.Contains(line, "\n")
}

// gitWorktree reads core.worktree as git itself writes it for a submodule.
func gitWorktree(config string) (string, bool) {
	fi, err := os.Stat(config)
	if err != nil || !fi.Mode().IsRegular() || fi.Size() > maxGitFile {
		return "", false
	}
	data, err := os.ReadFile(config)
	if err != nil {
		return "", false
	}
	for line := range strings.Lines(string(data)) {
		if tree, ok := strings.CutPrefix(strings.TrimSpace(line), "worktree = "); ok {
			return tree, true
		}
	}
	return "", false
}

func from(dir, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}

func same(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

// gitDirs protects the git directories that dir's .git file leads to, which are
// writable and need not be called .git.
func (f *finder) gitDirs() {
	for _, root := range f.writableRoots() {
		for _, dir := range GitDirs(root) {
			f.gitDir(dir)
		}
	}
}

func (f *finder) gitDir(dir string) {
	if !f.writable(dir) {
		return
	}
	f.watched[dir] = true
	for _, module := range f.modules(filepath.Join(dir, "modules")) {
		f.gitDir(module)
	}
	for _, name := range gitRuns {
		p := filepath.Join(dir, name)
		if _, err := os.Lstat(p); err != nil {
			continue
		}
		f.plan.Known[p] = true
		if real, _, err := f.resolve(p); err == nil && !f.out(real) {
			f.narrow(real, min(f.Gate.Decide(real).Access, files.ReadOnly))
		}
	}
}

// modules lists the git directories of submodules in dir, which is called modules,
// and theirs, outermost first. A submodule's name is a path: libs/a is two
// directories down.
//
// Threat: a program writes the configuration of a submodule in a directory, or of a
// submodule's submodule, which git status of the repository around it obeys -> all
// are found, whatever their depth. What git stores in one (refs, objects) is not
// searched: a branch may be called config. Left over: what lies beyond MaxDirs,
// which the run says.
func (f *finder) modules(dir string) []string {
	if found, ok := f.submodules[dir]; ok {
		return found
	}
	var found []string
	queue := []string{dir}
	for ; len(queue) > 0; queue = queue[1:] {
		d := queue[0]
		git := d != dir && f.obeyed(d)
		if git {
			found = append(found, d)
		}
		if f.IsDir(d) && f.writable(d) {
			f.watched[d] = true
		}
		for _, e := range f.list.all(d) {
			p := filepath.Join(d, e.name)
			switch {
			case e.kind == unix.DT_LNK && f.obeyed(p):
				found = append(found, p)
			case e.kind != unix.DT_DIR || git && gitStores(e.name) && !f.isGitDir(p):
			case f.inModules == MaxDirs:
				f.plan.Whole = false
			default:
				f.inModules++
				queue = append(queue, p)
			}
		}
	}
	f.submodules[dir] = found
	return found
}

// obeyed reports whether git may take dir for a git directory.
func (f *finder) obeyed(dir string) bool {
	return f.kind(filepath.Join(dir, "HEAD")) != 0 || f.kind(filepath.Join(dir, "config")) != 0
}

// isGitDir reports whether dir has all that makes a git directory.
func (f *finder) isGitDir(dir string) bool {
	return f.kind(filepath.Join(dir, "HEAD")) != 0 && f.IsDir(filepath.Join(dir, "objects"))
}

// gitStores reports whether a directory of that name in a git directory holds what
// git stores or names, and nothing that it obeys by itself.
func gitStores(name string) bool {
	switch name {
	case "objects", "refs", "logs", "lfs", "hooks", "info", "branches":
		return true
	}
	return false
}

// gitEntry protects a .git that is not a directory: a program that replaced it
// would say which configuration git obeys.
func (f *finder) gitEntry(path string, kind uint8) {
	f.plan.Known[path] = true
	switch kind {
	case unix.DT_LNK:
		f.links[path] = true
		if real, links, err := f.resolve(path); err == nil {
			for _, l := range links {
				if f.writable(filepath.Dir(l)) {
					f.links[l] = true
				}
			}
			f.gitDir(real)
		}
	case unix.DT_REG:
		f.narrow(path, files.ReadOnly)
	}
}

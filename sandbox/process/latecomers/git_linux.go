package latecomers

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"egressd/policy/files"
)

// A program may make repositories: git init, git clone and submodules go on to
// work. What git would obey in a new one is judged by its content.
//
// Threat: the program makes a repository whose hooks or configuration run a
// command as soon as a person's prompt or editor asks git for the state of that
// directory -> hooks that are not samples are moved away, and so is a
// configuration with any key but those that git itself writes and that run
// nothing. A directory that is laid out as one under another name: see bare_linux.go.

// newRepository reports whether a new directory of that name is a git directory,
// or that of a submodule.
func newRepository(path string) bool {
	return filepath.Base(path) == ".git" || inGit(path) && filepath.Base(filepath.Dir(path)) == "modules"
}

func inGit(path string) bool {
	return strings.HasSuffix(path, "/.git") || strings.Contains(path, "/.git/")
}

// gitData reports whether a directory of that name in a git directory holds what
// git stores, which it does not obey.
func gitData(name string) bool {
	return name == "objects" || name == "refs" || name == "logs" || name == "lfs"
}

// linkedVerdict judges the file in a linked worktree's directory that says which
// repository it belongs to: the one that it lies in.
func linkedVerdict(path string) verdict {
	if fi, err := os.Lstat(path); err != nil || fi.Mode().IsRegular() && fi.Size() == 0 {
		return verdict{}
	}
	if data, ok := content(path); !ok || strings.TrimSpace(string(data)) != "../.." {
		return refuse("**/.git/commondir")
	}
	return verdict{}
}

// inNewRepository reports the git directory that was made during the run and holds
// path, and path from there on. Directories of submodules are such as well.
func (g *Guard) inNewRepository(path string) (repo, rel string, ok bool) {
	i := strings.LastIndex(path, "/.git/")
	if i < 0 {
		return "", "", false
	}
	repo, rel = path[:i+len("/.git")], path[i+len("/.git/"):]
	if !g.Plan.Known[repo] {
		return repo, rel, true
	}
	if !strings.HasPrefix(rel, "modules/") {
		return "", "", false
	}
	// The submodule is what holds the name that is obeyed.
	module := filepath.Dir(path)
	for filepath.Base(module) == "hooks" || filepath.Base(module) == "info" {
		module = filepath.Dir(module)
	}
	if module == repo+"/modules" || g.Plan.Known[module+"/config"] {
		return "", "", false
	}
	return module, strings.TrimPrefix(path, module+"/"), true
}

var runsLater = files.Decision{Access: files.ReadOnly, Reason: files.RunsLater}

func refuse(rule string) verdict {
	d := runsLater
	d.Rule = files.Rule{Path: rule, At: "built in"}
	return verdict{refused: true, decision: d}
}

// gitVerdict judges a name in a new git directory.
func (g *Guard) gitVerdict(repo, rel, path string) verdict {
	dir, name := filepath.Split(rel)
	switch {
	case filepath.Base(dir) == "hooks":
		if !strings.HasSuffix(name, ".sample") {
			return refuse("**/.git/hooks")
		}
	case name == "config" || name == "config.worktree":
		if fi, err := os.Lstat(path); err == nil && (!fi.Mode().IsRegular() || !harmless(path)) {
			return refuse("**/.git/config")
		}
	case rel == "commondir" || rel == "gitdir":
		return refuse("**/.git/" + rel)
	case rel == "hooks" || rel == "info" || rel == "modules":
		if fi, err := os.Lstat(path); err == nil && fi.Mode()&os.ModeSymlink != 0 {
			return refuse("**/.git/" + rel)
		}
	}
	return verdict{}
}

// gitEntry judges a new name .git. A file is git's way to a linked worktree or a
// submodule, whose directory is in that of a repository.
func (g *Guard) gitEntry(path string) verdict {
	fi, err := os.Lstat(path)
	switch {
	case err != nil || fi.IsDir():
		return verdict{}
	case !fi.Mode().IsRegular():
		return refuse("**/.git")
	case fi.Size() == 0:
		return verdict{} // being written: its end is told, too
	}
	data, ok := content(path)
	dir, isLink := strings.CutPrefix(strings.TrimSpace(string(data)), "gitdir: ")
	if !ok || !isLink {
		return refuse("**/.git")
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(filepath.Dir(path), dir)
	}
	dir = filepath.Clean(dir)
	i := strings.LastIndex(dir, "/.git/")
	if trees := filepath.Dir(dir); i < 0 && filepath.Base(trees) == "worktrees" && laidOut(filepath.Dir(trees)) && g.reach(dir) {
		return verdict{} // of a repository under another name
	}
	if i < 0 || !g.reach(dir[:i+len("/.git")]) { // else what is in there is not judged
		return refuse("**/.git")
	}
	if rel := dir[i+len("/.git/"):]; !strings.HasPrefix(rel, "worktrees/") && !strings.HasPrefix(rel, "modules/") {
		return refuse("**/.git")
	}
	return verdict{}
}

// reach watches dir, which may have been made a moment ago, from the watched
// directory above it on; false: nobody looks there.
func (g *Guard) reach(dir string) bool {
	var below []string
	at := dir
	for ; g.byPath[at] == nil; at = filepath.Dir(at) {
		if at == "/" {
			return false
		}
		below = append(below, filepath.Base(at))
	}
	for _, name := range slices.Backward(below) {
		g.judge(g.byPath[at], name, true)
		if at = filepath.Join(at, name); g.byPath[at] == nil {
			return false
		}
	}
	return true
}

// maxConfig bounds a configuration that is read, in bytes. A longer one is
// refused.
const maxConfig = 64 << 10

// content reads a small regular file, whatever a program does to it meanwhile.
func content(path string) ([]byte, bool) {
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{
		Flags: unix.O_RDONLY | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil {
		return nil, false
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	if fi, err := f.Stat(); err != nil || !fi.Mode().IsRegular() {
		return nil, false
	}
	data, err := io.ReadAll(io.LimitReader(f, maxConfig+1))
	return data, err == nil && len(data) <= maxConfig
}

// harmlessKeys are the keys of a configuration that git writes itself and that
// name no command, no file and no other configuration.
var harmlessKeys = map[string][]string{
	"core":       {"repositoryformatversion", "filemode", "bare", "logallrefupdates", "ignorecase", "precomposeunicode", "symlinks", "autocrlf", "eol", "sparsecheckout", "sparsecheckoutcone", "worktree"},
	"remote":     {"url", "fetch", "tagopt", "prune", "partialclonefilter", "promisor", "mirror"},
	"branch":     {"remote", "merge", "rebase", "description"},
	"user":       {"name", "email"},
	"submodule":  {"url", "active", "branch", "recurse"},
	"extensions": {"objectformat", "partialclone", "worktreeconfig", "refstorage"},
	"init":       {"defaultbranch"},
	"pull":       {"rebase", "ff"},
	"push":       {"default", "autosetupremote"},
	"fetch":      {"prune", "recursesubmodules"},
	"lfs":        {"repositoryformatversion"},
	"advice":     {"detachedhead"},
	"commit":     {"gpgsign"},
	"gc":         {"auto"},
	"receive":    {"denycurrentbranch", "denydeletes", "denynonfastforwards", "autogc"},
	"http":       {"receivepack", "uploadpack"},
	"uploadpack": {"allowfilter", "allowanysha1inwant", "allowtipsha1inwant", "allowreachablesha1inwant"},
}

// harmless reports whether git's configuration at path holds harmless keys alone.
func harmless(path string) bool {
	data, ok := content(path)
	if !ok {
		return false
	}
	section := ""
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || line[0] == '#' || line[0] == ';':
			continue
		case strings.HasSuffix(line, `\`):
			return false // it goes on in the next line
		case line[0] == '[':
			name, ok := strings.CutSuffix(line[1:], "]")
			if !ok || strings.Contains(name, "]") {
				return false
			}
			section, _, _ = strings.Cut(name, " ")
			section = strings.ToLower(section)
			continue
		}
		key, value, _ := strings.Cut(line, "=")
		key = strings.ToLower(strings.TrimSpace(key))
		if !slices.Contains(harmlessKeys[section], key) || key == "url" && strings.Contains(value, "::") {
			return false
		}
	}
	return true
}

package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Target is where a result goes.
type Target struct {
	Dir    string // in a work tree
	Branch bool   // always to a branch
}

// Landed says what Pull did.
type Landed struct {
	Branch string // the branch that has it; "": the work tree has it, or there was nothing
	Paths  int    // in the diff
}

// errInTheWay is a work tree that a result cannot be applied to as it is.
var errInTheWay = errors.New("the work tree has changes")

// Pull brings a result into a person's repository: into the work tree, if that is clean
// and still at the commit that the run began with, and else to the branch warrant/ID,
// which is made anew. The index and the files of the person stay as they are.
//
// Threat: a diff leads into .git or out of the work tree, also by way of a link that is
// there -> see checkout. Left over: it changes files that run later, as a person would
// have to see in the diff.
func Pull(ctx context.Context, to Target, r *Result) (Landed, error) {
	if len(r.Diff) == 0 {
		return Landed{}, nil
	}
	c, err := open(to.Dir)
	if err != nil {
		return Landed{}, err
	}
	own, _, err := c.repo(ctx)
	if err != nil {
		return Landed{}, err
	}
	defer own.close()
	if _, err := own.git(ctx, nil, "cat-file", "-e", r.Head+"^{commit}"); err != nil {
		return Landed{}, fmt.Errorf("the run began with %s, which this repository does not have", r.Head)
	}
	p := pull{checkout: c, repo: own, result: r}
	if p.before, err = own.list(ctx, r.Head+"^{tree}"); err != nil {
		return Landed{}, err
	}
	var tree string
	if _, err = own.git(ctx, nil, "read-tree", r.Head+"^{tree}"); err == nil {
		_, err = own.git(ctx, r.Diff, "apply", "--cached", "--binary", "--whitespace=nowarn", "-")
	}
	if err == nil {
		tree, err = own.git(ctx, nil, "write-tree")
	}
	if err == nil {
		p.after, err = own.list(ctx, tree)
	}
	if err != nil {
		return Landed{}, err
	}
	names := changed(p.before, p.after)
	if !to.Branch {
		if err = p.apply(ctx, names); !errors.Is(err, errInTheWay) {
			return Landed{Paths: len(names)}, err
		}
	}
	branch, err := p.toBranch(ctx, tree)
	return Landed{Branch: branch, Paths: len(names)}, err
}

// pull is a result on its way into a repository.
type pull struct {
	checkout
	repo          *repo
	result        *Result
	before, after map[string]object
}

// apply makes the changes in the work tree, or none of them: errInTheWay.
func (p *pull) apply(ctx context.Context, names []string) error {
	if p.head != p.result.Head {
		return errInTheWay
	}
	root, err := os.OpenRoot(p.top)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := p.clean(ctx, root, names); err != nil {
		return err
	}
	// What was removed goes first: a file may become a directory.
	for _, name := range names {
		if p.before[name] == (object{}) {
			continue
		}
		if err := root.Remove(name); err != nil {
			return err
		}
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			if root.Remove(dir) != nil {
				break // it has other files
			}
		}
	}
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return p.after[name] == (object{}) })
	return p.repo.checkout(ctx, root, p.after, names)
}

// clean makes sure that index and work tree are those of the commit, and that nothing
// is where a new file goes.
func (p *pull) clean(ctx context.Context, root *os.Root, names []string) error {
	if _, err := p.index(p.repo); err != nil {
		return err
	}
	theirs := *p.repo
	theirs.env = append(slices.Clone(p.repo.env), "GIT_INDEX_FILE="+filepath.Join(p.repo.dir, "theirs"))
	staged, err := theirs.git(ctx, nil, "diff-index", "--cached", "--name-only", "-z", p.head)
	if err != nil {
		return err
	}
	if staged != "" {
		return errInTheWay
	}
	same := 0
	t := &tree{root: root, known: map[string]bool{}, subs: submodules(p.before)}
	for name := range p.before {
		t.known[name] = true
	}
	t.visit = func(name, mode string, data []byte) error {
		if o, ok := p.before[name]; ok && o == (object{mode, blobName(data, p.repo.size)}) {
			same++
		}
		return nil
	}
	if err := t.walk(ctx, p.exclude()); err != nil {
		return err
	}
	if same+len(t.subs) != len(p.before) {
		return errInTheWay
	}
	for _, name := range names {
		if p.before[name].mode == modeSubmodule || p.after[name].mode == modeSubmodule {
			return errInTheWay
		}
		if p.before[name] != (object{}) {
			continue
		}
		if err := free(root, name, p.before); err != nil {
			return err
		}
	}
	return nil
}

// free reports errInTheWay if something is in the place of a new file, or a link leads
// there.
func free(root *os.Root, name string, before map[string]object) error {
	at := ""
	for part := range strings.SplitSeq(name, "/") {
		at = path.Join(at, part)
		info, err := root.Lstat(at)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case before[at] != (object{}):
			return nil // it goes first
		case at == name && info.IsDir() && tracked(before, at):
			return nil // its files go first
		case at == name || !info.IsDir():
			return errInTheWay
		}
	}
	return nil
}

// tracked reports whether files below dir are tracked.
func tracked(all map[string]object, dir string) bool {
	for name := range all {
		if strings.HasPrefix(name, dir+"/") {
			return true
		}
	}
	return false
}

// toBranch commits the tree to a branch.
func (p *pull) toBranch(ctx context.Context, tree string) (string, error) {
	if err := CheckID(p.result.RunID); err != nil {
		return "", err
	}
	id := strings.TrimPrefix(p.result.RunID, "run_")
	if id == "" {
		id = p.result.DiffHash
	}
	id = id[:min(len(id), 12)]
	name := "warrant/" + id
	ref := "refs/heads/" + name
	if err := p.checkedOut(ref); err != nil {
		return "", err
	}
	theirs := *p.repo
	theirs.fsync = "all"
	theirs.env = append(slices.Clone(p.repo.env), "GIT_OBJECT_DIRECTORY="+filepath.Join(p.common, "objects"))
	message := "warrant run " + p.result.RunID
	if p.result.RunID == "" {
		message = "warrant result " + id
	}
	// The tree is made once more, where the commit goes.
	if _, err := theirs.git(ctx, nil, "read-tree", p.result.Head+"^{tree}"); err != nil {
		return "", err
	}
	if _, err := theirs.git(ctx, p.result.Diff, "apply", "--cached", "--binary", "--whitespace=nowarn", "-"); err != nil {
		return "", err
	}
	if made, err := theirs.git(ctx, nil, "write-tree"); err != nil || made != tree {
		return "", errors.Join(err, fmt.Errorf("the tree is %s, not %s", made, tree))
	}
	commit, err := theirs.git(ctx, []byte(message+"\n"), "commit-tree", tree, "-p", p.result.Head)
	if err != nil {
		return "", err
	}
	return name, p.setRef(ref, commit)
}

// CheckID refuses the ID of a run that could not name a branch. "" is none.
func CheckID(id string) error {
	const known = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
	if strings.Trim(id, known) != "" || len(id) > maxID || strings.HasPrefix(id, "-") {
		return fmt.Errorf("a run's ID has letters, digits, _ and -, at most %d: %q", maxID, id)
	}
	return nil
}

const maxID = 128

// checkedOut refuses a branch that a work tree has.
func (p *pull) checkedOut(ref string) error {
	heads, err := filepath.Glob(filepath.Join(p.common, "worktrees", "*", "HEAD"))
	if err != nil {
		heads = nil // a name that is a pattern: the two that are known are looked at
	}
	for _, head := range append(heads, filepath.Join(p.common, "HEAD"), filepath.Join(p.git, "HEAD")) {
		if text, err := small(head, maxRef); err == nil && text == "ref: "+ref {
			return fmt.Errorf("the branch %s is checked out: go to another one first", strings.TrimPrefix(ref, "refs/heads/"))
		}
	}
	return nil
}

// setRef writes a ref as git does: by way of its lock.
func (p *pull) setRef(ref, commit string) error {
	root, err := os.OpenRoot(p.common)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := root.MkdirAll(path.Dir(ref), 0o755); err != nil {
		return err
	}
	lock := ref + ".lock"
	if err := create(root, lock, []byte(commit+"\n"), 0o644); err != nil {
		return err
	}
	if err := root.Rename(lock, ref); err != nil {
		_ = root.Remove(lock)
		return err
	}
	return nil
}

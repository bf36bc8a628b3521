package workspace

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"egressd/internal/run/receipt/canonical"
	"egressd/internal/run/receipt/format"
)

// Source is a work tree to capture.
type Source struct {
	Dir string // in it
	// Untracked are patterns of untracked files that are captured, too. Files that are
	// ignored never are.
	Untracked []string
	Deny      []string // patterns of what is not captured, tracked or not; nil: DenyPatterns
}

// Captured is what a capture holds.
type Captured struct {
	Manifest format.Manifest
	Files    int       // tracked files
	Made     bool      // the base is a commit of our own without history, since that has denied files or breaks off
	Refused  []Problem // files that could not be captured
}

// capturing is a capture on its way.
type capturing struct {
	checkout
	repo              *repo
	out               string
	untracked, denied patterns
	base              map[string]object
	tracked           map[string]bool
	work              importer // the work tree
	manifest          *format.Manifest
}

// Capture writes a capture of a work tree to out, a new directory: HEAD with its
// history, what was changed since, and the untracked files that were asked for.
//
// Threat: a key or a .env travels to a machine of others -> what matches a denied
// pattern is left out wherever it is: untracked, changed, committed, or in the history,
// which is then left out as a whole. Left over: secrets in files of other names.
func Capture(ctx context.Context, s Source, out string) (Captured, error) {
	c := capturing{out: out, manifest: &format.Manifest{Version: format.VersionManifest, UntrackedFiles: []format.ManifestFile{}, DeniedPaths: []string{}}}
	if s.Deny == nil {
		s.Deny = DenyPatterns()
	}
	c.manifest.DeniedPatterns = s.Deny
	var err error
	if c.denied, err = parsePatterns(s.Deny); err != nil {
		return Captured{}, err
	}
	if c.untracked, err = parsePatterns(s.Untracked); err != nil {
		return Captured{}, err
	}
	if c.checkout, err = open(s.Dir); err != nil {
		return Captured{}, err
	}
	if err := outside(c.top, out); err != nil {
		return Captured{}, err
	}
	shallow := false
	if c.repo, shallow, err = c.checkout.repo(ctx); err != nil {
		return Captured{}, err
	}
	defer c.repo.close()
	if err := os.Mkdir(out, 0o700); err != nil {
		return Captured{}, err
	}
	done, err := c.capture(ctx, shallow)
	if err != nil {
		_ = os.RemoveAll(out)
		return Captured{}, err
	}
	return done, nil
}

// outside refuses a place in the work tree: it would be captured itself.
func outside(top, out string) error {
	parent, err := filepath.Abs(filepath.Dir(out))
	if err == nil {
		parent, err = filepath.EvalSymlinks(parent)
	}
	if err != nil {
		return err
	}
	if top, err = filepath.EvalSymlinks(top); err != nil {
		return err
	}
	if rel, err := filepath.Rel(top, parent); err == nil && filepath.IsLocal(rel) {
		return fmt.Errorf("%s is in the work tree that it would hold: name a directory elsewhere", out)
	}
	return nil
}

func (c *capturing) capture(ctx context.Context, shallow bool) (Captured, error) {
	if err := os.Mkdir(filepath.Join(c.out, blobsName), 0o700); err != nil {
		return Captured{}, err
	}
	made, err := c.commit(ctx, shallow)
	if err != nil {
		return Captured{}, err
	}
	refused, err := c.workTree(ctx)
	if err != nil {
		return Captured{}, err
	}
	name := filepath.Join(c.repo.dir, "bundle")
	_, err = c.repo.git(ctx, nil, "update-ref", "--no-deref", "HEAD", c.manifest.BaseRef)
	if err == nil {
		_, err = c.repo.git(ctx, nil, "bundle", "create", "--quiet", name, "HEAD")
	}
	var bundle []byte
	if err == nil {
		bundle, err = readBounded(name)
	}
	if err == nil {
		c.manifest.BundleHash, err = c.blob(bundle)
	}
	if err != nil {
		return Captured{}, err
	}
	slices.Sort(c.manifest.DeniedPaths)
	c.manifest.DeniedPaths = slices.Compact(c.manifest.DeniedPaths)
	text, err := canonical.Marshal(c.manifest)
	if err == nil {
		err = os.WriteFile(filepath.Join(c.out, manifestName), append(text, '\n'), 0o600)
	}
	if err == nil && made {
		err = os.WriteFile(filepath.Join(c.out, headName), []byte(c.head), 0o600)
	}
	return Captured{Manifest: *c.manifest, Files: len(c.work.from) + len(c.work.new), Made: made, Refused: refused}, err
}

// commit finds the base: HEAD, or a commit of our own if HEAD may not travel.
func (c *capturing) commit(ctx context.Context, shallow bool) (made bool, err error) {
	if c.base, err = c.repo.list(ctx, c.head+"^{tree}"); err != nil {
		return false, err
	}
	objects, err := c.repo.git(ctx, nil, "rev-list", "--objects", c.head)
	if err != nil {
		return false, err
	}
	made = shallow
	for line := range strings.SplitSeq(objects, "\n") {
		if _, name, _ := strings.Cut(line, " "); name != "" && c.denied.match(name) {
			made = true
			break
		}
	}
	for name := range c.base {
		if c.denied.match(name) {
			made = true
			c.manifest.DeniedPaths = append(c.manifest.DeniedPaths, name)
			delete(c.base, name)
		}
	}
	if c.manifest.BaseRef = c.head; !made {
		return false, nil
	}
	m := importer{from: c.base}
	tree, err := m.tree(ctx, c.repo)
	if err == nil {
		c.manifest.BaseRef, err = c.repo.git(ctx, []byte("captured from "+c.head+", without its history\n"), "commit-tree", tree)
	}
	return true, err
}

// workTree captures what is not committed.
func (c *capturing) workTree(ctx context.Context) ([]Problem, error) {
	var err error
	if c.tracked, err = c.index(c.repo); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(c.top)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	t := &tree{root: root, known: maps.Clone(c.tracked), subs: submodules(c.base), visit: c.visit}
	if t.known == nil {
		t.known = map[string]bool{}
	}
	for name := range c.base {
		t.known[name] = true
	}
	c.work.from = submodules(c.base)
	if err := t.walk(ctx, c.exclude()); err != nil {
		return nil, err
	}
	for name, o := range c.base {
		if t.shut(name) {
			c.work.from[name] = o
		}
	}
	tree, err := c.work.tree(ctx, c.repo)
	if err != nil {
		return nil, err
	}
	diff, err := c.repo.diff(ctx, c.manifest.BaseRef+"^{tree}", tree)
	if err == nil && len(diff) > 0 {
		c.manifest.DirtyDiffHash, err = c.blob(diff)
	}
	return t.refused, err
}

func submodules(all map[string]object) map[string]object {
	subs := map[string]object{}
	for name, o := range all {
		if o.mode == modeSubmodule {
			subs[name] = o
		}
	}
	return subs
}

// visit captures one file of the work tree.
func (c *capturing) visit(name, mode string, data []byte) error {
	_, committed := c.base[name]
	switch {
	case c.denied.match(name):
		c.manifest.DeniedPaths = append(c.manifest.DeniedPaths, name)
	case committed && c.base[name] == object{mode, blobName(data, c.repo.size)}:
		c.work.from[name] = c.base[name]
	case committed || c.tracked[name]:
		return c.work.add(name, mode, data)
	case !c.untracked.match(name):
	case mode != modeFile || !portable(name):
		return c.work.add(name, mode, data) // a manifest has no place for a mode, a diff has
	default:
		hash, err := c.blob(data)
		if err != nil {
			return err
		}
		c.manifest.UntrackedFiles = append(c.manifest.UntrackedFiles, format.ManifestFile{Path: name, Hash: hash, Bytes: int64(len(data))})
	}
	return nil
}

// blob keeps content under its hash.
func (c *capturing) blob(data []byte) (string, error) {
	hash := canonical.Sum(data)
	err := os.WriteFile(filepath.Join(c.out, blobsName, hash), data, fs.FileMode(0o600))
	if err != nil {
		return "", fmt.Errorf("blob: %w", err)
	}
	return hash, nil
}

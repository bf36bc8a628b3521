// Package workspace carries a git work tree to a run and what the run made of it back.
//
//	head, err := workspace.Capture(ctx, workspace.Source{Dir: "."}, "capture")
//	start, err := workspace.Materialise(ctx, "capture", "work")
//	... a program changes work ...
//	out, err := workspace.Collect(ctx, "capture", "work", secrets)
//	landed, err := workspace.Pull(ctx, workspace.Target{Dir: "."}, out)
//
// A capture is a directory: manifest.json, in the format of an existing control plane,
// and blobs that it names by hash (a git bundle, a diff of what was not committed,
// untracked files).
//
// Threat: a repository, or the .git that a run leaves, names programs that git would
// start: hooks, fsmonitor, filters, textconv, external diffs, includes, alternates, a
// replaced index, a submodule with a configuration of its own -> git runs in a private
// directory, on a repository that is made there for the one call, with a configuration
// and an environment of ours; it is never told where a work tree is. Work trees are
// read and written here, below one os.Root and without following a link; of a person's
// repository only HEAD, refs, index and objects are read, and of a run's .git nothing.
// Left over: bugs of git itself in reading objects, bundles and diffs.
//
// Conversions that a repository asks for (end of line, filters such as LFS) are not
// made: bytes travel as they are on disk. Submodules keep their commit; what is in them
// does not travel. Packages below it hold one part each: redact takes secrets out.
package workspace

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"egressd/internal/run/receipt/canonical"
	"egressd/internal/run/receipt/format"
)

// Bounds.
const (
	maxFile  = 512 << 20 // bytes of one file
	maxNew   = 1 << 30   // bytes of the files that are not in the base
	maxTotal = 8 << 30   // bytes of the files of a work tree
	maxFiles = 500_000   // entries of a work tree
	maxText  = 256 << 20 // bytes that git may print
)

// Names in a capture.
const (
	manifestName = "manifest.json"
	headName     = "head" // the commit that was captured, if the base is made of it
	blobsName    = "blobs"
)

// DenyPatterns name what is never captured, unless others are given.
func DenyPatterns() []string {
	return []string{".env", ".env.*", "*.pem", "*.key", "id_rsa*", "id_ed25519*"}
}

// capture is a capture that is being read.
type capture struct {
	dir      string
	manifest format.Manifest
	head     string // the commit that a person has; the base, unless that was made
}

// ReadManifest reads the manifest of a capture.
func ReadManifest(dir string) (format.Manifest, error) {
	c, err := openCapture(dir)
	return c.manifest, err
}

func openCapture(dir string) (capture, error) {
	c := capture{dir: dir}
	text, err := os.ReadFile(filepath.Join(dir, manifestName))
	if errors.Is(err, os.ErrNotExist) {
		return c, fmt.Errorf("%s is no capture: it has no %s; launch workspace capture makes one", dir, manifestName)
	}
	if err != nil {
		return c, err
	}
	if c.manifest, err = parseManifest(text); err != nil {
		return c, fmt.Errorf("%s: %w", filepath.Join(dir, manifestName), err)
	}
	c.head = c.manifest.BaseRef
	switch head, err := os.ReadFile(filepath.Join(dir, headName)); {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return c, err
	case !isObject(string(head)):
		return c, fmt.Errorf("%s: this is no commit", filepath.Join(dir, headName))
	default:
		c.head = string(head)
	}
	return c, nil
}

// parseManifest reads a manifest and refuses one that is not whole.
func parseManifest(text []byte) (m format.Manifest, err error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&m); err != nil {
		return m, err
	}
	if dec.More() {
		return m, errors.New("something follows the manifest")
	}
	return m, m.Validate()
}

// blob reads a blob of at most maxFile bytes, and holds it against its hash: what is
// used is what was checked.
//
// Threat: somebody changes a bundle, a diff or a file between capture and run -> each is
// read once, and its hash is that of the signed manifest. Left over: who made the
// manifest.
func (c *capture) blob(hash string) ([]byte, error) {
	name := filepath.Join(c.dir, blobsName, hash)
	data, err := readBounded(name)
	if err != nil {
		return nil, err
	}
	if got := canonical.Sum(data); got != hash {
		return nil, fmt.Errorf("%s was changed: its hash is %s", name, got)
	}
	return data, nil
}

func readBounded(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxFile {
		return nil, fmt.Errorf("%s is no file, or longer than %d bytes", name, maxFile)
	}
	return os.ReadFile(name)
}

// start makes a private repository with what the capture holds: its base, and the tree
// that a run begins with.
func (c *capture) start(ctx context.Context) (r *repo, tree string, err error) {
	bundle, err := c.blob(c.manifest.BundleHash)
	if err != nil {
		return nil, "", fmt.Errorf("bundle: %w", err)
	}
	if r, err = newRepo(ctx, len(c.manifest.BaseRef)); err != nil {
		return nil, "", err
	}
	defer func() {
		if err != nil {
			r.close()
			r = nil
		}
	}()
	name := filepath.Join(r.dir, "bundle")
	if err := os.WriteFile(name, bundle, 0o600); err != nil {
		return r, "", err
	}
	if _, err := r.git(ctx, nil, "bundle", "unbundle", name); err != nil {
		return r, "", fmt.Errorf("bundle: %w", err)
	}
	if _, err := r.git(ctx, nil, "read-tree", c.manifest.BaseRef+"^{tree}"); err != nil {
		return r, "", fmt.Errorf("the base %s: %w", c.manifest.BaseRef, err)
	}
	if h := c.manifest.DirtyDiffHash; h != "" {
		diff, err := c.blob(h)
		if err != nil {
			return r, "", fmt.Errorf("diff: %w", err)
		}
		if _, err := r.git(ctx, diff, "apply", "--cached", "--binary", "--whitespace=nowarn", "-"); err != nil {
			return r, "", fmt.Errorf("diff: %w", err)
		}
	}
	if tree, err = r.git(ctx, nil, "write-tree"); err != nil {
		return r, "", err
	}
	base, err := r.list(ctx, tree)
	if err != nil {
		return r, "", err
	}
	imp := importer{from: base}
	for _, f := range c.manifest.UntrackedFiles {
		data, err := c.blob(f.Hash)
		if err != nil {
			return r, "", fmt.Errorf("%s: %w", f.Path, err)
		}
		if err := safePath(f.Path); err != nil {
			return r, "", err
		}
		if base[f.Path] != (object{}) {
			return r, "", fmt.Errorf("%s is untracked in the manifest, and tracked in its bundle", f.Path)
		}
		if err := imp.add(f.Path, modeFile, data); err != nil {
			return r, "", err
		}
	}
	if len(c.manifest.UntrackedFiles) > 0 {
		tree, err = imp.tree(ctx, r)
	}
	return r, tree, err
}

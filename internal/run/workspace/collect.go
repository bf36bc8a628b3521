package workspace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"egressd/internal/run/receipt/canonical"
	"egressd/internal/run/workspace/redact"
)

const (
	// gone is the hash of a file that a run has removed.
	gone = "0000000000000000000000000000000000000000000000000000000000000000"
	// minSure is the shortest secret that a diff is not to hold by chance.
	minSure = 8
)

// Result is what came of a run: a diff against the base.
type Result struct {
	RunID    string    `json:"runId,omitempty"`
	BaseRef  string    `json:"baseRef"`
	Head     string    `json:"head"` // the commit that a person has; the base, unless that was made
	DiffHash string    `json:"diffHash"`
	Changed  []Change  `json:"changed"`
	Refused  []Problem `json:"refused"` // what is not in the diff

	Diff []byte `json:"-"`
}

// Change is a path that differs from the base.
type Change struct {
	Path        string `json:"path"`
	ContentHash string `json:"contentHash"` // SHA-256 of what left; 64 zeros: it is gone
}

// Collect reads what a run has made of the work tree in dir. Ignored files are left
// out, unless the run began with them.
//
// Threat: see the package for the .git that the run leaves. A secret leaves with a file
// -> contents are redacted before they are compared, so that the diff still applies, and
// hashes are those of what leaves. A file whose name has a secret, or whose committed
// content has one, which a diff would show, stays behind and is named. Left over: see
// package redact.
func Collect(ctx context.Context, captureDir, dir string, secrets []redact.Secret) (*Result, error) {
	c, err := openCapture(captureDir)
	if err != nil {
		return nil, err
	}
	r, start, err := c.start(ctx)
	if err != nil {
		return nil, err
	}
	defer r.close()
	began, err := r.list(ctx, start)
	if err != nil {
		return nil, err
	}
	base, err := r.list(ctx, c.manifest.BaseRef+"^{tree}")
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	k := collector{repo: r, base: base, redactor: redact.New(secrets), hashes: map[string]string{}}
	k.sure = redact.New(slices.DeleteFunc(slices.Clone(secrets), func(s redact.Secret) bool { return len(s.Value) < minSure }))
	k.work.from = submodules(base)
	k.tree = &tree{root: root, known: map[string]bool{}, subs: k.work.from, visit: k.visit}
	for name := range began {
		k.tree.known[name] = true
	}
	if err := k.tree.walk(ctx, nil); err != nil {
		return nil, err
	}
	for name, o := range base {
		if k.tree.shut(name) {
			k.work.from[name] = o
		}
	}
	if err := k.holdBack(ctx); err != nil {
		return nil, err
	}
	out, err := k.result(ctx)
	if err != nil {
		return nil, err
	}
	out.BaseRef, out.Head = c.manifest.BaseRef, c.head
	return out, nil
}

type collector struct {
	repo     *repo
	tree     *tree
	base     map[string]object
	redactor *redact.Redactor
	sure     *redact.Redactor // for a last look
	work     importer
	hashes   map[string]string // of what leaves, by path
}

// visit collects one file.
func (k *collector) visit(name, mode string, data []byte) error {
	if o := k.base[name]; o == (object{mode, blobName(data, k.repo.size)}) {
		k.work.from[name] = o
		return nil
	}
	if held, err := k.redactor.Found([]byte(name)); held != "" || err != nil {
		safe, err := k.redactor.Redact([]byte(name))
		k.tree.refused = append(k.tree.refused, Problem{string(safe), "its name holds a secret"})
		return err
	}
	out, err := k.redactor.Redact(data)
	switch {
	case errors.Is(err, redact.ErrTooLarge):
		k.refuse(name, err.Error())
	case err != nil:
		return err
	default:
		k.hashes[name] = canonical.Sum(out)
		return k.work.add(name, mode, out)
	}
	return nil
}

// refuse keeps a change back: what the base has there stays.
func (k *collector) refuse(name, why string) {
	k.tree.refused = append(k.tree.refused, Problem{name, why})
	delete(k.hashes, name)
	delete(k.work.from, name)
	if o, ok := k.base[name]; ok {
		k.work.from[name] = o
	}
	delete(k.work.new, name)
}

// holdBack refuses changes to what has a secret in the base: a diff has both sides.
func (k *collector) holdBack(ctx context.Context) error {
	var names, objects []string
	for _, name := range sortedNames(k.base) {
		if k.work.from[name] == (object{}) {
			names, objects = append(names, name), append(objects, k.base[name].name)
		}
	}
	return k.repo.contents(ctx, objects, func(i int, data []byte) error {
		held, err := k.redactor.Found(data)
		if errors.Is(err, redact.ErrTooLarge) {
			k.refuse(names[i], err.Error())
			return nil
		}
		if held != "" {
			k.refuse(names[i], "what is committed there holds the secret "+held+", and a diff would show it")
		}
		return err
	})
}

// result makes the diff.
func (k *collector) result(ctx context.Context) (*Result, error) {
	tree, err := k.work.tree(ctx, k.repo)
	if err != nil {
		return nil, err
	}
	there, err := k.repo.list(ctx, tree)
	if err != nil {
		return nil, err
	}
	out := &Result{Changed: []Change{}, Refused: []Problem{}}
	out.Refused = append(out.Refused, k.tree.refused...)
	for _, name := range changed(k.base, there) {
		hash := k.hashes[name]
		if there[name] == (object{}) {
			hash = gone
		}
		out.Changed = append(out.Changed, Change{name, hash})
	}
	before := importer{from: k.base}
	from, err := before.tree(ctx, k.repo)
	if err != nil {
		return nil, err
	}
	if out.Diff, err = k.repo.diff(ctx, from, tree); err != nil || len(out.Diff) == 0 {
		return out, err
	}
	out.DiffHash = canonical.Sum(out.Diff)
	if held, err := k.sure.Found(out.Diff); held != "" || err != nil {
		return nil, errors.Join(fmt.Errorf("the diff still holds the secret %s: nothing leaves", held), err)
	}
	return out, nil
}

// Names in a directory of a result.
const (
	resultName = "result.json"
	diffName   = "diff"
)

// Write writes a result to dir, a new directory.
func (r *Result) Write(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	text, err := canonical.Marshal(r)
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(dir, diffName), r.Diff, 0o600),
		os.WriteFile(filepath.Join(dir, resultName), append(text, '\n'), 0o600),
	)
}

// ReadResult reads what Write has written, and holds the diff against its hash.
func ReadResult(dir string) (*Result, error) {
	text, err := readBounded(filepath.Join(dir, resultName))
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%s is no result: it has no %s; launch workspace collect makes one", dir, resultName)
	}
	r := new(Result)
	if err == nil {
		err = json.Unmarshal(text, r)
	}
	if err == nil {
		r.Diff, err = readBounded(filepath.Join(dir, diffName))
	}
	if err != nil {
		return nil, err
	}
	if !isObject(r.BaseRef) || !isObject(r.Head) {
		return nil, fmt.Errorf("%s names no commit", filepath.Join(dir, resultName))
	}
	hash := ""
	if len(r.Diff) > 0 {
		hash = canonical.Sum(r.Diff)
	}
	if hash != r.DiffHash {
		return nil, fmt.Errorf("%s was changed: its hash is not that of %s", filepath.Join(dir, diffName), resultName)
	}
	return r, nil
}

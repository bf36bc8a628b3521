package workspace

import (
	"context"
	"crypto/sha1" // #nosec G505 -- the names of git's objects, not a guard
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"egressd/hermetic/gitignore"
)

// Problem is a path that was left out, and why.
type Problem struct {
	Path string `json:"path"`
	Why  string `json:"why"`
}

// tree is a work tree that is being read.
type tree struct {
	root    *os.Root
	known   map[string]bool   // tracked paths, and their directories: no rule ignores them
	subs    map[string]object // submodules, which are not entered
	rules   gitignore.Matcher
	files   int
	bytes   int64
	refused []Problem
	closed  []string // what could not be read: files, and directories with all below
	visit   func(name, mode string, data []byte) error
}

// walk hands every file and link of a work tree that git would add to visit, with its
// content; exclude are rules of ignored files besides.
//
// Threat: a link, a FIFO or a directory that is swapped under our feet leads out of the
// work tree or makes the reader wait -> all is opened below one os.Root, without
// blocking, and has to be the file that was looked at; links are read, not followed.
func (t *tree) walk(ctx context.Context, exclude []byte) error {
	all := map[string]bool{}
	for name := range t.known {
		for ; name != "." && !all[name]; name = path.Dir(name) {
			all[name] = true
		}
	}
	t.known = all
	t.rules.Add("", exclude)
	return t.dir(ctx, "")
}

// maxDepth bounds how deep directories lie in each other.
const maxDepth = 500

func (t *tree) dir(ctx context.Context, dir string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if strings.Count(dir, "/") > maxDepth {
		return fmt.Errorf("directories lie in each other more than %d deep", maxDepth)
	}
	at := dir
	if dir == "" {
		at = "."
	}
	kept := t.rules.Len()
	defer func() { t.rules.Cut(kept) }()
	if info, err := t.root.Lstat(path.Join(dir, ".gitignore")); err == nil && info.Mode().IsRegular() && info.Size() <= gitignore.MaxFile {
		text, err := t.read(path.Join(dir, ".gitignore"), info)
		if err != nil && !errors.Is(err, fs.ErrPermission) {
			return err
		}
		t.rules.Add(dir, text)
	}
	f, err := t.root.Open(at)
	if err != nil {
		return err
	}
	list, err := f.ReadDir(maxFiles + 1)
	_ = f.Close()
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	for _, d := range list {
		name := path.Join(dir, d.Name())
		err := t.entry(ctx, name, d)
		if errors.Is(err, fs.ErrPermission) {
			// A run can take the right to read away from its owner. That is no reason to
			// lose the rest.
			t.refused = append(t.refused, Problem{name, "it cannot be read: chmod u+rX"})
			t.closed, err = append(t.closed, name), nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// shut reports whether a path could not be read.
func (t *tree) shut(name string) bool {
	return slices.ContainsFunc(t.closed, func(c string) bool { return name == c || strings.HasPrefix(name, c+"/") })
}

func (t *tree) entry(ctx context.Context, name string, d fs.DirEntry) error {
	if gitDir(d.Name()) {
		return nil
	}
	if _, ok := t.subs[name]; ok {
		return nil
	}
	if !t.known[name] && t.rules.Ignored(name, d.IsDir()) {
		return nil
	}
	if t.files++; t.files > maxFiles {
		return fmt.Errorf("more than %d files", maxFiles)
	}
	if d.IsDir() {
		return t.dir(ctx, name)
	}
	info, err := t.root.Lstat(name)
	if err != nil {
		return err
	}
	if t.bytes += info.Size(); t.bytes > maxTotal {
		return fmt.Errorf("more than %d bytes", int64(maxTotal))
	}
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		to, err := t.root.Readlink(name)
		if err != nil {
			return err
		}
		return t.visit(name, modeLink, []byte(to))
	case !info.Mode().IsRegular():
		t.refused = append(t.refused, Problem{name, "it is no file and no link"})
		return nil
	case info.Size() > maxFile:
		t.refused = append(t.refused, Problem{name, fmt.Sprintf("it is longer than %d bytes", maxFile)})
		return nil
	}
	data, err := t.read(name, info)
	if err != nil {
		return err
	}
	mode := modeFile
	if info.Mode()&0o100 != 0 {
		mode = modeExecutable
	}
	return t.visit(name, mode, data)
}

// read reads the regular file that info is of.
func (t *tree) read(name string, info fs.FileInfo) ([]byte, error) {
	f, err := t.root.OpenFile(name, os.O_RDONLY|nonBlocking, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if now, err := f.Stat(); err != nil || !os.SameFile(info, now) || !now.Mode().IsRegular() {
		return nil, fmt.Errorf("%s was replaced while it was read", name)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = fmt.Errorf("%s grows while it is read", name)
	}
	return data, err
}

// blobName is the name that git gives to content; size is that of its names.
func blobName(data []byte, size int) string {
	var h hash.Hash = sha1.New() // #nosec G401 -- see the import
	if size == hexSHA256 {
		h = sha256.New()
	}
	h.Write([]byte("blob " + strconv.Itoa(len(data)) + "\x00"))
	h.Write(data)
	return hex.EncodeToString(h.Sum(nil))
}

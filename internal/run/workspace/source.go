package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"egressd/hermetic/gitignore"
)

// checkout is a person's work tree and its repository, as files.
type checkout struct {
	top    string // of the work tree
	git    string // its own directory: HEAD and index
	common string // refs and objects
	head   string // the commit
	branch string // that HEAD stands for, "refs/heads/..."; "": none
}

const (
	maxRef   = 64 << 10
	maxRefs  = 64 << 20
	maxIndex = 256 << 20
	maxHops  = 5
)

// open finds the work tree that dir is in.
func open(dir string) (checkout, error) {
	top, err := filepath.Abs(dir)
	if err != nil {
		return checkout{}, err
	}
	for ; ; top = filepath.Dir(top) {
		info, err := os.Stat(filepath.Join(top, ".git"))
		if err == nil {
			return openAt(top, info.IsDir())
		}
		if top == filepath.Dir(top) {
			return checkout{}, fmt.Errorf("%s is in no git repository: git init makes one", dir)
		}
	}
}

func openAt(top string, isDir bool) (c checkout, err error) {
	c = checkout{top: top, git: filepath.Join(top, ".git")}
	if !isDir {
		text, err := small(c.git, maxRef)
		if err != nil {
			return c, err
		}
		to, ok := strings.CutPrefix(text, "gitdir: ")
		if !ok {
			return c, fmt.Errorf("%s names no repository", c.git)
		}
		c.git = within(top, to)
	}
	c.common = c.git
	if text, err := small(filepath.Join(c.git, "commondir"), maxRef); err == nil {
		c.common = within(c.git, text)
	}
	c.head, err = c.resolve("HEAD", &c.branch)
	if err != nil {
		return c, fmt.Errorf("%s: HEAD: %w", top, err)
	}
	return c, nil
}

func within(dir, name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(dir, name)
}

// small reads a file of at most limit bytes, without the end of its last line.
func small(name string, limit int64) (string, error) {
	info, err := os.Stat(name)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() || info.Size() > limit {
		return "", fmt.Errorf("%s is no file, or longer than %d bytes", name, limit)
	}
	text, err := os.ReadFile(name)
	return strings.TrimRight(string(text), "\r\n"), err
}

// resolve follows a ref to its commit. branch, unless nil, gets the last ref's name.
func (c *checkout) resolve(name string, branch *string) (string, error) {
	for range maxHops {
		text, err := small(filepath.Join(c.git, name), maxRef)
		if errors.Is(err, os.ErrNotExist) {
			text, err = small(filepath.Join(c.common, name), maxRef)
		}
		if errors.Is(err, os.ErrNotExist) {
			text, err = c.packed(name)
		}
		if err != nil {
			return "", err
		}
		to, symbolic := strings.CutPrefix(text, "ref: ")
		if !symbolic {
			if !isObject(text) {
				return "", fmt.Errorf("%s is no commit", name)
			}
			return text, nil
		}
		if !strings.HasPrefix(to, "refs/") || strings.Contains(to, "..") {
			return "", fmt.Errorf("%q is no ref (a repository with reftable is not read)", to)
		}
		if name = to; branch != nil {
			*branch = to
		}
	}
	return "", errors.New("its refs go round in circles")
}

// packed finds a ref in packed-refs.
func (c *checkout) packed(name string) (string, error) {
	text, err := small(filepath.Join(c.common, "packed-refs"), maxRefs)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	for line := range strings.Lines(text) {
		object, ref, _ := strings.Cut(strings.TrimRight(line, "\r\n"), " ")
		if ref == name {
			return object, nil
		}
	}
	return "", errors.New("there is no commit yet: git commit makes one")
}

// repo is a private repository that reads the objects of this one. The caller closes
// it. shallow: the history breaks off.
func (c *checkout) repo(ctx context.Context) (r *repo, shallow bool, err error) {
	if r, err = newRepo(ctx, len(c.head)); err != nil {
		return nil, false, err
	}
	objects := filepath.Join(c.common, "objects")
	if strings.ContainsAny(objects, "\n") {
		err = fmt.Errorf("%q has the end of a line in it", objects)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(r.dir, "git", "objects", "info", "alternates"), []byte(objects+"\n"), 0o600)
	}
	if err == nil {
		var text string
		text, err = small(filepath.Join(c.common, "shallow"), maxRefs)
		if errors.Is(err, os.ErrNotExist) {
			err = nil
		} else if err == nil {
			shallow = true
			err = os.WriteFile(filepath.Join(r.dir, "git", "shallow"), []byte(text+"\n"), 0o600)
		}
	}
	if err != nil {
		r.close()
		return nil, false, err
	}
	return r, shallow, nil
}

// index reads which paths are tracked, and leaves a copy of the index in r.
func (c *checkout) index(r *repo) (map[string]bool, error) {
	name := filepath.Join(c.git, "index")
	info, err := os.Stat(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxIndex {
		return nil, fmt.Errorf("%s is longer than %d bytes", name, maxIndex)
	}
	data, err := os.ReadFile(name)
	if err == nil {
		err = os.WriteFile(filepath.Join(r.dir, "theirs"), data, 0o600)
	}
	if err != nil {
		return nil, err
	}
	tracked, err := gitignore.Tracked(data, len(c.head)/2)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return tracked, nil
}

// exclude are the rules of ignored files that are this person's alone.
func (c *checkout) exclude() []byte {
	text, err := small(filepath.Join(c.common, "info", "exclude"), gitignore.MaxFile)
	if err != nil {
		return nil // most have none
	}
	return bytes.TrimSpace([]byte(text))
}

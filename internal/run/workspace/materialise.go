package workspace

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Materialise makes the work tree of a capture in dir, a new directory, with a
// repository in it whose HEAD is the base. Every blob is held against its hash before it
// is used.
func Materialise(ctx context.Context, captureDir, dir string) error {
	c, err := openCapture(captureDir)
	if err != nil {
		return err
	}
	r, tree, err := c.start(ctx)
	if err != nil {
		return err
	}
	defer r.close()
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	if err := c.fill(ctx, r, tree, dir); err != nil {
		_ = os.RemoveAll(dir)
		return err
	}
	return nil
}

func (c *capture) fill(ctx context.Context, r *repo, tree, dir string) error {
	all, err := r.list(ctx, tree)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := r.checkout(ctx, root, all, sortedNames(all)); err != nil {
		return err
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	own := *r
	own.env = append(slices.Clone(r.env), "GIT_DIR="+filepath.Join(abs, ".git"), "GIT_INDEX_FILE="+filepath.Join(abs, ".git", "index"))
	for _, args := range [][]string{
		{"init", "--quiet", "--template=", "--object-format=" + map[int]string{hexSHA1: "sha1", hexSHA256: "sha256"}[r.size]},
		{"bundle", "unbundle", filepath.Join(r.dir, "bundle")},
		{"update-ref", "--no-deref", "HEAD", c.manifest.BaseRef},
		{"read-tree", "HEAD"},
	} {
		if _, err := own.git(ctx, nil, args...); err != nil {
			return err
		}
	}
	return nil
}

func sortedNames(all map[string]object) []string {
	names := make([]string, 0, len(all))
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// checkout writes objects to their places below root. Nothing may be in their place.
//
// Threat: a tree leads out of the work tree, or into a .git, by its names or by links
// among its entries or among the files that are there -> names are held against safePath,
// no element of a path may be a link, and everything is made below one os.Root.
func (r *repo) checkout(ctx context.Context, root *os.Root, all map[string]object, names []string) error {
	var files, objects []string
	for _, name := range names {
		if err := safePath(name); err != nil {
			return err
		}
		if err := parents(root, name, true); err != nil {
			return err
		}
		switch all[name].mode {
		case modeSubmodule:
			if err := root.Mkdir(name, 0o755); err != nil {
				return err
			}
		case modeFile, modeExecutable, modeLink:
			files, objects = append(files, name), append(objects, all[name].name)
		default:
			return fmt.Errorf("%s: a file of mode %q", name, all[name].mode)
		}
	}
	return r.contents(ctx, objects, func(i int, data []byte) error {
		name := files[i]
		if all[name].mode == modeLink {
			if err := parents(root, name, false); err != nil {
				return err
			}
			return root.Symlink(string(data), name)
		}
		perm := fs.FileMode(0o644)
		if all[name].mode == modeExecutable {
			perm = 0o755
		}
		if err := parents(root, name, false); err != nil {
			return err
		}
		return create(root, name, data, perm)
	})
}

// create makes a new file.
func create(root *os.Root, name string, data []byte, perm fs.FileMode) error {
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

// parents makes sure that what leads to name are directories and no links; with
// missing, it makes those that are not there.
func parents(root *os.Root, name string, missing bool) error {
	at := ""
	for part := range strings.SplitSeq(path.Dir(name), "/") {
		if part == "." {
			return nil
		}
		at = path.Join(at, part)
		info, err := root.Lstat(at)
		switch {
		case missing && os.IsNotExist(err):
			if err := root.Mkdir(at, 0o755); err != nil {
				return err
			}
		case err != nil:
			return err
		case !info.IsDir():
			return fmt.Errorf("%s is in %s, which is no directory", name, at)
		}
	}
	return nil
}

package vfs

import (
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"
)

// at walks to name and calls do with the place; the error it reports is a
// PathError.
func (f *FS) at(op, name string, how int, do func(p *place) error) error {
	err := f.enter()
	if err == nil {
		defer f.mu.RUnlock()
		var p *place
		if p, err = f.walk(name, how); err == nil {
			defer p.close()
			err = do(p)
		}
	}
	if err != nil {
		return &fs.PathError{Op: op, Path: name, Err: errnoOf(err)}
	}
	return nil
}

// lstat is of the place itself; a slash at the end of its name asks for a
// directory.
func (p *place) lstat() (*Attr, error) {
	a, err := p.d.lstat(p.leaf)
	if err == nil && p.slash && !a.isDir() {
		return nil, syscall.ENOTDIR
	}
	return a, err
}

// change refuses what must not be changed: .git, and the roots of the tree.
func (p *place) change() error {
	if p.readOnly() {
		if _, err := p.d.lstat(p.leaf); err != nil && !dotGit(p.leaf) {
			return err
		}
		return syscall.EROFS
	}
	return nil
}

// Stat follows links; Sys() is a *syscall.Stat_t whose owner is 1000, 1000.
func (f *FS) Stat(name string) (fs.FileInfo, error) { return f.stat("stat", name, follow) }

// Lstat does not follow a link at the end.
func (f *FS) Lstat(name string) (fs.FileInfo, error) { return f.stat("lstat", name, 0) }

func (f *FS) stat(op, name string, how int) (i fs.FileInfo, err error) {
	err = f.at(op, name, how, func(p *place) error {
		a, err := p.lstat()
		i = &info{path.Base(name), a}
		return err
	})
	if err != nil {
		return nil, err
	}
	return i, nil
}

// ReadDir lists a directory, sorted by the bytes of the names.
func (f *FS) ReadDir(name string) (list []fs.DirEntry, err error) {
	err = f.at("open", name, follow, func(p *place) error {
		d := p.d
		if p.leaf != "." {
			if d, err = p.d.sub(p.leaf); err != nil {
				return err
			}
			defer d.close()
		}
		all, err := d.list()
		for _, e := range all {
			if e.name == "tmp" && p.path() == "/" {
				e.attr = f.tmp.lstatTop() // whatever the workspace has there
			}
			list = append(list, fs.FileInfoToDirEntry(&info{e.name, e.attr}))
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(list, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return list, nil
}

// Access is access(2) for this user: mode is a sum of 4 (read), 2 (write) and 1
// (execute).
func (f *FS) Access(name string, mode uint32) error {
	return f.at("access", name, follow, func(p *place) error {
		if _, err := p.lstat(); err != nil {
			return err
		}
		if mode&2 != 0 && p.readOnly() {
			return syscall.EROFS
		}
		return p.d.access(p.leaf, mode&7)
	})
}

// Resolve is realpath(3): the name without links, "." and "..". All of it
// exists.
func (f *FS) Resolve(name string) (real string, err error) {
	err = f.at("realpath", name, follow, func(p *place) error {
		real = p.path()
		_, err := p.lstat()
		return err
	})
	if err != nil {
		return "", err
	}
	return real, nil
}

// Readlink reports what a link says.
func (f *FS) Readlink(name string) (target string, err error) {
	err = f.at("readlink", name, 0, func(p *place) error {
		if p.leaf == "." || p.slash {
			_, err := p.lstat()
			return firstErr(err, syscall.EINVAL)
		}
		target, err = p.d.readlink(p.leaf)
		return err
	})
	return target, err
}

// Mkdir makes a directory.
func (f *FS) Mkdir(name string, perm fs.FileMode) error {
	return f.at("mkdir", name, creating, func(p *place) error {
		if _, err := p.d.lstat(p.leaf); err == nil {
			return syscall.EEXIST
		} else if !isErr(err, syscall.ENOENT) {
			return err
		}
		if p.readOnly() {
			return syscall.EROFS
		}
		return p.d.mkdir(p.leaf, permOf(perm))
	})
}

// Remove is unlink(2) or rmdir(2).
func (f *FS) Remove(name string) error {
	return f.at("remove", name, creating, func(p *place) error {
		if err := p.steady(name); err != nil {
			return err
		}
		if _, err := p.lstat(); err != nil {
			return err
		}
		if err := p.change(); err != nil {
			return err
		}
		return p.d.remove(p.leaf)
	})
}

// steady refuses names that no entry can be taken away by: mount points, "."
// and "..".
func (p *place) steady(name string) error {
	switch base := path.Base(name); {
	case base == "..":
		return syscall.ENOTEMPTY
	case p.mount, len(p.at) == 0 && p.leaf == ".":
		return syscall.EBUSY
	case strings.HasSuffix(strings.TrimRight(name, "/"), "/."):
		return syscall.EINVAL
	case p.leaf == ".":
		return syscall.ENOTEMPTY
	}
	return nil
}

// Rename is rename(2).
func (f *FS) Rename(from, to string) error {
	return f.two("rename", from, to, false, func(a, b *place) error {
		if a.leaf == "." || b.leaf == "." {
			return syscall.EBUSY
		}
		was, err := a.lstat()
		if err != nil {
			return err
		}
		if b.slash && !was.isDir() {
			return syscall.ENOTDIR
		}
		if a.readOnly() || b.readOnly() || a.holdsProtected() {
			return syscall.EROFS
		}
		if a.d.tree() != b.d.tree() {
			return syscall.EXDEV
		}
		return a.d.tree().rename(a.d, a.leaf, b.d, b.leaf)
	})
}

// Link makes a hard link.
func (f *FS) Link(from, to string) error {
	return f.two("link", from, to, true, func(a, b *place) error {
		was, err := a.lstat()
		if err != nil {
			return err
		}
		if _, err := b.d.lstat(b.leaf); err == nil {
			return syscall.EEXIST
		} else if !isErr(err, syscall.ENOENT) {
			return err
		}
		switch {
		case b.slash:
			return syscall.ENOENT
		case a.d.tree() != b.d.tree():
			return syscall.EXDEV
		case a.readOnly() || b.readOnly():
			return syscall.EROFS
		case was.isDir():
			return syscall.EPERM
		}
		return a.d.tree().link(a.d, a.leaf, b.d, b.leaf)
	})
}

// two walks to both names; first: from must exist before to is looked at.
func (f *FS) two(op, from, to string, first bool, do func(a, b *place) error) error {
	err := f.enter()
	if err == nil {
		defer f.mu.RUnlock()
		err = f.pair(from, to, first, do)
	}
	if err != nil {
		return &os.LinkError{Op: op, Old: from, New: to, Err: errnoOf(err)}
	}
	return nil
}

func (f *FS) pair(from, to string, first bool, do func(a, b *place) error) error {
	how := creating
	if first {
		how = 0
	}
	a, err := f.walk(from, how)
	if err != nil {
		return err
	}
	defer a.close()
	if first {
		if _, err := a.lstat(); err != nil {
			return err
		}
	}
	b, err := f.walk(to, creating)
	if err != nil {
		return err
	}
	defer b.close()
	return do(a, b)
}

// Symlink makes a symbolic link at name that says target.
func (f *FS) Symlink(target, name string) error {
	err := f.at("symlink", name, creating, func(p *place) error {
		switch _, err := p.d.lstat(p.leaf); {
		case err == nil:
			return syscall.EEXIST
		case !isErr(err, syscall.ENOENT):
			return err
		case target == "" || p.slash:
			return syscall.ENOENT
		case len(target) >= maxPath:
			return syscall.ENAMETOOLONG
		case strings.IndexByte(target, 0) >= 0:
			return syscall.EINVAL
		case p.readOnly():
			return syscall.EROFS
		}
		return p.d.symlink(target, p.leaf)
	})
	if err != nil {
		return &os.LinkError{Op: "symlink", Old: target, New: name, Err: errnoOf(err)}
	}
	return nil
}

// Chmod follows links.
func (f *FS) Chmod(name string, mode fs.FileMode) error {
	return f.at("chmod", name, follow, func(p *place) error {
		if _, err := p.lstat(); err != nil {
			return err
		}
		if err := p.change(); err != nil {
			return err
		}
		return p.d.chmod(p.leaf, permOf(mode))
	})
}

// Chtimes sets the times of access and modification; follow says whether of a
// link's target or of itself. A zero time leaves that one.
func (f *FS) Chtimes(name string, atime, mtime time.Time, followLink bool) error {
	how := 0
	if followLink {
		how = follow
	}
	return f.at("chtimes", name, how, func(p *place) error {
		if _, err := p.lstat(); err != nil {
			return err
		}
		if err := p.change(); err != nil {
			return err
		}
		return p.d.chtimes(p.leaf, atime, mtime)
	})
}

// Truncate sets the size of a file.
func (f *FS) Truncate(name string, size int64) error {
	h, err := f.OpenFile(name, syscall.O_WRONLY, 0)
	if err == nil {
		err = h.Truncate(size)
		_ = h.Close()
	}
	if err != nil {
		return &fs.PathError{Op: "truncate", Path: name, Err: errnoOf(err)}
	}
	return nil
}

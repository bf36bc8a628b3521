package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// guarded is a file that nobody inside may change.
type guarded struct {
	File  string   // its real path
	Names []string // other paths that lead to it: links, and other mounts of its file system
}

// maxLinks bounds a chain of symbolic links, as the kernel does.
const maxLinks = 40

// guard finds every name of path. uid is whom the harness runs as.
//
// Threat: the harness changes the file by a name that no mount covers, or
// replaces the link by which the person names it -> links and other mounts are
// found and covered; a second hard link, which can be anywhere, is refused.
// Left over: a link in the place of a directory above the file.
func guard(path string, uid uint32) (guarded, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return guarded{}, err
	}
	var g guarded
	for range maxLinks {
		dir, err := filepath.EvalSymlinks(filepath.Dir(path))
		if err != nil {
			return g, err
		}
		path = filepath.Join(dir, filepath.Base(path))
		target, err := os.Readlink(path)
		if err != nil {
			break // no link: the file
		}
		g.Names = append(g.Names, path)
		if !filepath.IsAbs(target) {
			target = filepath.Join(dir, target)
		}
		path = target
	}
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return g, &fs.PathError{Op: "lstat", Path: path, Err: err}
	}
	writable := st.Uid == uid || uid == 0 || st.Mode&0o022 != 0
	if st.Mode&unix.S_IFMT == unix.S_IFREG && st.Nlink > 1 && writable {
		return g, fmt.Errorf("%s has a second name (hard link) by which the program could change it: make a copy and name that", path)
	}
	g.File = path
	mounts, err := readMounts()
	if err != nil {
		return g, err
	}
	g.Names = append(g.Names, mounts.aliases(path)...)
	return g, nil
}

// protect makes the files of cfg.Protect unchangeable from inside.
//
// Threat: the harness rewrites the policy for the next run, edits the event
// log, or swaps either (or a directory above it) for one of its own -> each
// name of the file is a read-only mount, and every directory above it that
// could be renamed is a mount as well, which the kernel does not let anybody
// rename. Left over: see guard.
func (in *initProcess) protect(*picked) error {
	for _, g := range in.cfg.Protect {
		shown := "/dev/null" // a link to a file that is out of reach stays a name
		switch _, err := os.Lstat(g.File); {
		case err == nil:
			shown = g.File
		case !in.outOfReach(g.File, err):
			return err
		}
		for _, name := range append(g.Names, g.File) {
			if _, err := os.Lstat(name); err != nil && in.outOfReach(name, err) {
				continue
			}
			if err := pinParents(name); err != nil {
				return err
			}
			if err := bindOver(shown, name, true); err != nil {
				return err
			}
		}
	}
	return nil
}

// outOfReach reports whether err means that nobody inside gets to path: it is
// hidden by a private root, or lies where this user may not go.
func (in *initProcess) outOfReach(path string, err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) && below(path, in.cfg.Plan.Roots)
}

// pinParents mounts every directory above path that could be renamed, now or
// after its parent's mode was changed, on itself, from the outside in.
func pinParents(path string) error {
	var dirs []string
	for dir := filepath.Dir(path); dir != "/"; dir = filepath.Dir(dir) {
		parent := filepath.Dir(dir)
		if (unix.Access(parent, unix.W_OK) == nil || ownedByUs(parent)) && !isMountPoint(dir) {
			dirs = append(dirs, dir)
		}
	}
	for i := len(dirs) - 1; i >= 0; i-- {
		if err := bindOver(dirs[i], dirs[i], false); err != nil {
			return err
		}
	}
	return nil
}

func ownedByUs(path string) bool {
	fi, err := os.Stat(path)
	if err != nil {
		return false
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}

func isMountPoint(path string) bool {
	var st unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, 0, &st)
	return err == nil && st.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0
}

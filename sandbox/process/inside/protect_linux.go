package inside

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// protect makes the files of cfg.Protect unchangeable from inside.
//
// Threat: the program rewrites the policy for the next run, edits the event
// log, or swaps either (or a directory above it) for one of its own -> each
// name of the file is a read-only mount, and every directory above it that
// could be renamed is a mount as well, which the kernel does not let anyone
// rename. Of a pipe, whose reader the program could become, only names are left.
// Left over: what the supervisor's guard says, and a replacement from outside,
// which internal/linux/replaced notices.
func (b *builder) protect() error {
	for _, g := range b.cfg.Protect {
		shown := "/dev/null" // a link to a file that is out of reach stays a name, and so does a pipe
		switch fi, err := os.Lstat(g.File); {
		case err == nil && (fi.IsDir() || fi.Mode().IsRegular()):
			shown = g.File
		case err == nil:
		case !b.outOfReach(g.File, err):
			return err
		}
		for _, name := range append(g.Names, g.File) {
			if _, err := os.Lstat(name); err != nil && b.outOfReach(name, err) {
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

// hideDirs empties the directories of the plan.
//
// Threat: the program reads or writes what launch itself will trust later, its
// records of named sandboxes, or plants the directory for them -> the supervisor
// makes it first; inside it is an empty read-only one, and no directory above it can
// be renamed. Left over: as with protect.
func (b *builder) hideDirs() error {
	for _, dir := range b.cfg.Plan.Hidden {
		if _, err := os.Lstat(dir); err != nil {
			if b.outOfReach(dir, err) {
				continue
			}
			return err
		}
		if err := pinParents(dir); err != nil {
			return err
		}
		if err := cover(dir); err != nil {
			return err
		}
	}
	return nil
}

// outOfReach reports whether err means that no program inside gets to path: it is
// hidden by a private root or by what is shown in its place, or lies where this
// user may not go.
func (b *builder) outOfReach(path string, err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) && b.ours(path)
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

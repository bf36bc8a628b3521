package inside

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"

	"golang.org/x/sys/unix"

	"egressd/sandbox/process/control"
)

// pickPlaces clones what the read-only file systems and the covers will take.
func (b *builder) pickPlaces() error {
	for _, p := range b.cfg.Plan.Places {
		t := tree(-1)
		if p.Kind == control.PlaceWritable || p.Kind == control.PlaceReadable {
			var err error
			t, err = cloneTree(p.Path, p.Kind == control.PlaceReadable)
			if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.EACCES) {
				return err
			}
		}
		b.places = append(b.places, t)
	}
	return nil
}

// mountPlaces mounts what the supervisor planned (package places says against
// what), from the outside in.
func (b *builder) mountPlaces() error {
	var covers []tree // sealed when all that belongs into them is there
	for i, p := range b.cfg.Plan.Places {
		cover, err := b.mountPlace(p, b.places[i])
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // removed outside, this moment
			return fmt.Errorf("%s: %w", p.Path, err)
		}
		if cover > 0 {
			covers = append(covers, cover)
		}
	}
	for _, c := range covers {
		attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
		err := unix.MountSetattr(int(c), "", unix.AT_EMPTY_PATH, &attr)
		unix.Close(int(c))
		if err != nil {
			return fmt.Errorf("mount_setattr: %w", err)
		}
	}
	return nil
}

// mountPlace mounts p. picked is what was cloned for it, -1: nothing. A cover is
// to be sealed later; 0: there is none.
func (b *builder) mountPlace(p control.Place, picked tree) (cover tree, err error) {
	var st unix.Stat_t
	missing := unix.Lstat(p.Path, &st) != nil
	switch p.Kind {
	case control.PlaceWritable, control.PlaceReadable:
		if picked < 0 {
			return 0, nil // gone since, or out of this user's reach
		}
		if missing {
			if err := mountPoint(p.Path, p.Dir); err != nil {
				picked.discard()
				return 0, goneOutside(err)
			}
		}
		return 0, picked.attach(p.Path)
	case control.PlacePrivate:
		if missing {
			if err := mountPoint(p.Path, true); err != nil {
				return 0, goneOutside(err)
			}
		}
		return 0, b.mountRoom(p.Path, 0o700)
	}
	if missing {
		return 0, nil // gone since, or behind a cover
	}
	switch p.Kind {
	case control.PlaceCovered:
		return b.coverPlace(p)
	case control.PlaceReadOnly, control.PlacePinned:
		return 0, bindOver(p.Path, p.Path, p.Kind == control.PlaceReadOnly)
	case control.PlaceLink:
		return 0, pinLink(p.Path)
	}
	return 0, fmt.Errorf("a place of unknown kind %d", p.Kind)
}

// goneOutside is nil where a mount point would have to be made in a file system of
// the host, which is read-only by now: somebody removed the directory outside after
// it was planned. Nothing is mounted, so the program gets less. A working directory
// that is missing is told when the program is to start in it.
func goneOutside(err error) error {
	if errors.Is(err, unix.EROFS) {
		return nil
	}
	return err
}

// coverPlace mounts an empty directory or an empty file, each with an inode of its
// own, on p.
func (b *builder) coverPlace(p control.Place) (tree, error) {
	name := strconv.Itoa(b.rooms)
	b.rooms++
	if p.Dir {
		if err := unix.Mkdirat(int(b.scratch), name, 0o755); err != nil {
			return 0, &fs.PathError{Op: "mkdir", Path: p.Path, Err: err}
		}
	} else {
		fd, err := unix.Openat(int(b.scratch), name, unix.O_CREAT|unix.O_EXCL|unix.O_RDONLY|unix.O_CLOEXEC, 0o444)
		if err != nil {
			return 0, &fs.PathError{Op: "create", Path: p.Path, Err: err}
		}
		unix.Close(fd)
	}
	mode := uint32(0o444)
	if p.Dir {
		mode = 0o755
	}
	if err := unix.Fchmodat(int(b.scratch), name, mode, 0); err != nil { // whatever the umask is
		return 0, &fs.PathError{Op: "chmod", Path: p.Path, Err: err}
	}
	fd, err := unix.OpenTree(int(b.scratch), name, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return 0, &fs.PathError{Op: "open_tree", Path: p.Path, Err: err}
	}
	if err := tree(fd).place(p.Path); err != nil {
		unix.Close(fd)
		return 0, err
	}
	return tree(fd), nil
}

// pinLink mounts a symbolic link on itself: it leads where it did, and whoever
// renames or removes it is refused, as with every mount.
func pinLink(path string) error {
	fd, err := unix.OpenTree(unix.AT_FDCWD, path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_SYMLINK_NOFOLLOW)
	if err != nil {
		return &fs.PathError{Op: "open_tree", Path: path, Err: err}
	}
	return tree(fd).attach(path)
}

// dropScratch lets go of the file system behind the private directories, which
// goes on to exist in them.
func (b *builder) dropScratch() error {
	if b.scratch > 0 {
		b.scratch.discard()
		b.scratch = 0
	}
	return nil
}

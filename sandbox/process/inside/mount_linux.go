package inside

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// This file wraps the kernel's mount calls (Linux 5.12 and later). Mounts are
// prepared detached, as descriptors, and attached where they belong, so that
// what a mount hides can still be brought back afterwards.

// tree is a detached mount.
type tree int

// cloneTree copies the mounts at path and below.
func cloneTree(path string, readOnly bool) (tree, error) {
	fd, err := unix.OpenTree(unix.AT_FDCWD, path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	if err != nil {
		return -1, &fs.PathError{Op: "open_tree", Path: path, Err: err} // often one that is not there, which is no failure
	}
	t := tree(fd)
	if readOnly {
		if err := t.readOnly(); err != nil {
			t.discard()
			return -1, fmt.Errorf("%s: %w", path, err)
		}
	}
	return t, nil
}

// newTree mounts a new file system of type fstype, not attached anywhere yet. An
// option without a value is a flag.
func newTree(fstype string, attrs int, options ...[2]string) (tree, error) {
	fs, err := unix.Fsopen(fstype, unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("fsopen %s: %w", fstype, err)
	}
	defer unix.Close(fs)
	for _, o := range options {
		err := error(nil)
		if o[1] == "" {
			err = unix.FsconfigSetFlag(fs, o[0])
		} else {
			err = unix.FsconfigSetString(fs, o[0], o[1])
		}
		if err != nil {
			return -1, fmt.Errorf("%s: %s=%s: %w", fstype, o[0], o[1], err)
		}
	}
	if err := unix.FsconfigCreate(fs); err != nil {
		return -1, fmt.Errorf("create %s: %w", fstype, err)
	}
	fd, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, attrs)
	if err != nil {
		return -1, fmt.Errorf("fsmount %s: %w", fstype, err)
	}
	return tree(fd), nil
}

// attach mounts t on path and closes it.
func (t tree) attach(path string) error {
	defer unix.Close(int(t))
	return t.place(path)
}

// place mounts t on path; t is that mount from then on.
func (t tree) place(path string) error {
	if err := unix.MoveMount(int(t), "", unix.AT_FDCWD, path, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("mount on %s: %w", path, err)
	}
	return nil
}

func (t tree) readOnly() error {
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	return unix.MountSetattr(int(t), "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &attr)
}

func (t tree) discard() { unix.Close(int(t)) }

// bindOver mounts a copy of source on target. It checks for target first: to
// discard a copy that found no place, the kernel waits for every processor, half
// a millisecond or longer.
func bindOver(source, target string, readOnly bool) error {
	var st unix.Stat_t
	if err := unix.Lstat(target, &st); err != nil {
		return &fs.PathError{Op: "lstat", Path: target, Err: err}
	}
	t, err := cloneTree(source, readOnly)
	if err != nil {
		return err
	}
	return t.attach(target)
}

// makePrivate cuts mount events off from the host.
func makePrivate() error {
	attr := unix.MountAttr{Propagation: unix.MS_PRIVATE}
	return unix.MountSetattr(unix.AT_FDCWD, "/", unix.AT_RECURSIVE, &attr)
}

// mountReadOnly makes the mounts at path and below read-only.
func mountReadOnly(path string) error {
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	return unix.MountSetattr(unix.AT_FDCWD, path, unix.AT_RECURSIVE, &attr)
}

// mountPoint makes sure that path exists as a directory or a file.
func mountPoint(path string, dir bool) error {
	parent := path
	if !dir {
		parent = filepath.Dir(path)
	}
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return err
	}
	if dir {
		return nil
	}
	fd, err := unix.Open(path, unix.O_CREAT|unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return unix.Close(fd)
}

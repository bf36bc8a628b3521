package inside

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"egressd/sandbox/process/control"
)

// pickShown clones what the caller shows at other paths.
func (b *builder) pickShown() error {
	for _, s := range b.cfg.Plan.Shown {
		t, err := cloneTree(s.Source, s.ReadOnly)
		if err != nil {
			return err
		}
		b.shown = append(b.shown, t)
	}
	return nil
}

// readOnly makes every file system of the host read-only. What was picked up
// before is not, and what is mounted afterwards is not; /proc and the private
// /dev, which were there already, are made writable again.
//
// Threat: a program that runs as root, or whose user may write there, plants what
// the machine obeys while the run is on or later (/etc/ld.so.preload, cron,
// /usr/local/bin) -> the one flag covers every mount, and without capabilities
// nothing inside takes it off. Left over: nothing that is reached by a path.
func (b *builder) readOnly() error {
	if err := mountReadOnly("/"); err != nil {
		return err
	}
	attr := unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY}
	if b.scratch > 0 { // it lies behind /dev/shm
		if err := unix.MountSetattr(int(b.scratch), "", unix.AT_EMPTY_PATH, &attr); err != nil {
			return fmt.Errorf("mount_setattr: %w", err)
		}
	}
	for _, path := range []string{"/proc", "/dev", "/dev/shm", "/dev/pts", "/dev/mqueue"} {
		if !isMountPoint(path) {
			continue
		}
		if err := unix.MountSetattr(unix.AT_FDCWD, path, 0, &attr); err != nil {
			return &fs.PathError{Op: "mount_setattr", Path: path, Err: err}
		}
	}
	return nil
}

// maxEntries bounds how many entries a directory may have that must be taken
// apart to make a place in it: each one becomes a mount.
const maxEntries = 256

// makePlaces makes sure that everything shown has a place to be mounted on. A
// directory of the host that lacks one is replaced by a private one with the
// same entries, since nothing is made on the host.
func (b *builder) makePlaces() error {
	for _, s := range b.cfg.Plan.Shown {
		if _, err := os.Lstat(s.Path); err == nil || b.ours(s.Path) {
			continue
		}
		if err := b.takeApart(nearest(s.Path)); err != nil {
			return fmt.Errorf("a place for %s: %w", s.Path, err)
		}
	}
	return nil
}

// ours reports whether path lies where directories can be made without the
// host's noticing: in a private root, or in something shown before.
func (b *builder) ours(path string) bool {
	return below(path, b.cfg.Plan.Roots) || b.belowShown(path)
}

func (b *builder) belowShown(path string) bool {
	for _, s := range b.cfg.Plan.Shown {
		if s.Dir && strings.HasPrefix(path, s.Path+"/") {
			return true
		}
	}
	return false
}

// nearest reports the directory closest to path, above it, that exists.
func nearest(path string) string {
	for {
		path = filepath.Dir(path)
		if fi, err := os.Stat(path); err == nil && fi.IsDir() || path == "/" {
			return path
		}
	}
}

// entry is what was found in a directory that is taken apart.
type entry struct {
	name string
	dir  bool
	link string // where a symbolic link leads; "": none
	tree tree   // what is not a link
}

// entriesOf picks up what is in dir.
func entriesOf(dir string) ([]entry, error) {
	found, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	if len(found) > maxEntries {
		return nil, fmt.Errorf("%s has more than %d entries", dir, maxEntries)
	}
	var out []entry
	for _, f := range found {
		e := entry{name: f.Name(), dir: f.IsDir()}
		path := filepath.Join(dir, e.name)
		if f.Type()&fs.ModeSymlink != 0 {
			e.link, err = os.Readlink(path)
		} else {
			e.tree, err = cloneTree(path, false)
		}
		if errors.Is(err, fs.ErrNotExist) {
			continue // gone since
		}
		if err != nil {
			return nil, err
		}
		out = append(out, e)
	}
	return out, nil
}

// takeApart puts a private file system in the place of dir, with all that is
// in dir mounted or linked into it, and makes the places that are missing.
func (b *builder) takeApart(dir string) error {
	entries, err := entriesOf(dir)
	if err != nil {
		return err
	}
	var missing []control.Bind
	for _, s := range b.cfg.Plan.Shown {
		if _, err := os.Lstat(s.Path); err != nil && !b.ours(s.Path) && nearest(s.Path) == dir {
			missing = append(missing, s)
		}
	}
	t, err := newTree("tmpfs", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV, [2]string{"mode", "755"}, [2]string{"size", "1m"})
	if err != nil {
		return err
	}
	at := dir
	if dir == "/" {
		at = "/proc" // any directory would do: what is in it was picked up
	}
	if err := t.attach(at); err != nil {
		return err
	}
	if err := fill(at, entries); err != nil {
		return err
	}
	for _, s := range missing {
		if err := mountPoint(filepath.Join(at, strings.TrimPrefix(s.Path, dir)), s.Dir); err != nil {
			return err
		}
	}
	if err := sealed(at); err != nil || dir != "/" {
		return err
	}
	return newRoot(at)
}

// fill puts what was picked up into the directory at.
func fill(at string, entries []entry) error {
	for _, e := range entries {
		path := at + "/" + e.name
		if e.link != "" {
			if err := os.Symlink(e.link, path); err != nil {
				return err
			}
			continue
		}
		if err := mountPoint(path, e.dir); err != nil {
			return err
		}
		if err := e.tree.attach(path); err != nil {
			return err
		}
	}
	return nil
}

// sealed makes the file system at path itself read-only, not what is mounted
// in it.
func sealed(path string) error {
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	return unix.MountSetattr(unix.AT_FDCWD, path, 0, &attr)
}

// newRoot makes the file system at path the root, and lets go of the old one.
func newRoot(path string) error {
	if err := os.Chdir(path); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("pivot_root: %w", err)
	}
	// The old root lies on top of the new one now.
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("old root: %w", err)
	}
	return os.Chdir("/")
}

// show attaches what the caller shows.
func (b *builder) show() error {
	for i, s := range b.cfg.Plan.Shown {
		if _, err := os.Lstat(s.Path); err != nil {
			if err := mountPoint(s.Path, s.Dir); err != nil {
				return err
			}
		}
		if err := b.shown[i].attach(s.Path); err != nil {
			return err
		}
	}
	return nil
}

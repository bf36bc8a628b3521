package machine

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"egressd/sandbox/process"
)

// Volume is a directory of the host that outlives machines and is mounted in
// them. Its files are the machines' user's.
type Volume struct{ dir string }

// NewVolume makes an empty volume at dir, which must not exist.
func NewVolume(dir string) (*Volume, error) {
	if err := os.Mkdir(dir, 0o755); err != nil { // #nosec: the machines' user enters it
		return nil, err
	}
	err := os.Chmod(dir, 0o755) // #nosec: whatever the umask
	if u := new(Disk).user(); err == nil && u != nil {
		err = os.Lchown(dir, int(u.UID), int(u.GID))
	}
	if err != nil {
		return nil, errors.Join(err, os.Remove(dir))
	}
	return &Volume{dir: dir}, nil
}

// Remove removes what the volume holds. No machine may have it mounted.
func (v *Volume) Remove() error { return removeTree(v.dir) }

// Mount is a volume inside a machine.
type Mount struct {
	Volume *Volume
	Path   string // absolute; see process.Bind. Directories above it are made
	Copy   bool   // of what the volume holds at the start, to be read only
}

// copies is where a disk has the copies of volumes.
const copies = "mounts"

// mount makes d ready for mounts, and says what is to be bound.
func (d *Disk) mount(mounts []Mount) (binds []process.Bind, err error) {
	if err := d.unmount(); err != nil {
		return nil, err
	}
	for i, m := range mounts {
		b := process.Bind{Source: m.Volume.dir, Target: m.Path, ReadOnly: m.Copy}
		if m.Copy {
			b.Source = filepath.Join(d.dir, copies, strconv.Itoa(i))
			if err := os.MkdirAll(b.Source, 0o755); err != nil { // #nosec: the machine's user enters it
				return nil, err
			}
			if err := errors.Join(os.Chmod(filepath.Dir(b.Source), 0o755), copyTree(m.Volume.dir, b.Source)); err != nil { // #nosec: as above
				return nil, err
			}
		}
		binds = append(binds, b)
	}
	return binds, nil
}

// unmount removes the copies of volumes, which are no part of a disk.
func (d *Disk) unmount() error { return removeTree(filepath.Join(d.dir, copies)) }

// removeTree removes dir, even if a program inside removed its permissions.
func removeTree(dir string) error {
	if os.RemoveAll(dir) == nil {
		return nil
	}
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, _ error) error {
		if e != nil && e.IsDir() {
			_ = os.Chmod(path, 0o700) // #nosec: a directory; it is removed next
		}
		return nil
	})
	return os.RemoveAll(dir)
}

package process

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// protect makes the files of cfg.Protect unchangeable from inside.
//
// Threat: the harness rewrites the policy for the next run, edits the event
// log, or swaps either (or a directory above it) for one of its own -> each
// file is a read-only mount, and every directory above it that could be renamed
// is a mount as well, which the kernel does not let anybody rename. Left over:
// a symbolic link that names the file; the file behind it stays.
func (in *initProcess) protect(*picked) error {
	for _, path := range in.cfg.Protect {
		real, err := filepath.EvalSymlinks(path)
		if os.IsNotExist(err) && below(filepath.Clean(path), in.cfg.Plan.Roots) {
			continue // hidden by a private root
		}
		if err != nil {
			return fmt.Errorf("protect: %w", err)
		}
		if err := pinParents(real); err != nil {
			return err
		}
		if err := bindOver(real, real, true); err != nil {
			return err
		}
	}
	return nil
}

// pinParents mounts every renamable directory above path on itself, from the
// outside in.
func pinParents(path string) error {
	var dirs []string
	for dir := filepath.Dir(path); dir != "/"; dir = filepath.Dir(dir) {
		if unix.Access(filepath.Dir(dir), unix.W_OK) == nil && !isMountPoint(dir) {
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

func isMountPoint(path string) bool {
	var st unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, 0, &st)
	return err == nil && st.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0
}

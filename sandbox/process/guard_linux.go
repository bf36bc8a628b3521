package process

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"egressd/internal/linux/mountinfo"
	"egressd/sandbox/process/control"
)

// maxLinks bounds a chain of symbolic links, as the kernel does.
const maxLinks = 40

// guard finds every name of path among mounts. uid is the user that the program runs as.
//
// Threat: the program changes the file by a name that no mount covers, or replaces
// the link by which the person names it -> links and other mounts are found and
// covered; a second hard link, which can be anywhere, is refused.
// Left over: a link in the place of a directory above the file.
func guard(path string, uid uint32, mounts mountinfo.Table) (control.Guarded, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return control.Guarded{}, err
	}
	var g control.Guarded
	for range maxLinks {
		dir, err := filepath.EvalSymlinks(filepath.Dir(path))
		if err != nil {
			return g, err
		}
		path = filepath.Join(dir, filepath.Base(path))
		target, err := os.Readlink(path)
		if err != nil {
			break // not a link: the file itself
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
	if st.Mode&unix.S_IFMT != unix.S_IFDIR && st.Nlink > 1 && writable {
		return g, fmt.Errorf("%s has a second name (hard link) by which the program could change it: make a copy and name that", path)
	}
	g.File = path
	g.Names = append(g.Names, mounts.Aliases(path)...)
	return g, nil
}

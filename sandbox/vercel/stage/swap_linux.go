package stage

import (
	"errors"
	"os"
	"path"
	"syscall"

	"golang.org/x/sys/unix"
)

// errNoSwap is the error of a file system that cannot.
var errNoSwap = errors.New("this file system has no such rename")

// exchange lets two names of one directory change places in one step.
func exchange(root *os.Root, a, b string) error { return rename(root, a, b, unix.RENAME_EXCHANGE) }

// renameNew renames from to to, in one directory, if nothing has that name.
func renameNew(root *os.Root, from, to string) error {
	return rename(root, from, to, unix.RENAME_NOREPLACE)
}

func rename(root *os.Root, from, to string, flags uint) error {
	dir, err := root.OpenFile(path.Dir(from), os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer dir.Close()
	at := int(dir.Fd())
	err = unix.Renameat2(at, path.Base(from), at, path.Base(to), flags)
	switch {
	case errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.ENOTSUP):
		return errNoSwap
	case err != nil:
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
	}
	return nil
}

// statusTime is when contents, mode or owner last changed, in nanoseconds.
func statusTime(info os.FileInfo) int64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Ctim.Nano()
	}
	return 0
}

package vfs

import (
	"errors"
	"io/fs"
	"syscall"
	"time"
)

// dir is a directory that a walk has reached. It stays that directory, whatever
// is renamed meanwhile. Names are single components, or "." for itself; no
// method follows a link.
type dir interface {
	sub(name string) (dir, error) // ENOTDIR for all but a directory
	lstat(name string) (*Attr, error)
	readlink(name string) (string, error) // EINVAL for all but a link
	list() ([]entry, error)
	access(name string, mode uint32) error

	open(name string, flag int, perm uint32) (handle, error) // ELOOP for a link
	mkdir(name string, perm uint32) error
	symlink(target, name string) error
	remove(name string) error
	chmod(name string, perm uint32) error
	chtimes(name string, atime, mtime time.Time) error

	tree() tree
	close()
}

// tree is a file system within which things can be renamed and linked. Both
// dirs are of this tree.
type tree interface {
	root() (dir, error)
	rename(from dir, name string, to dir, as string) error
	link(from dir, name string, to dir, as string) error
}

// handle is an open file or directory below the names and the counting.
type handle interface {
	read(p []byte) (int, error) // 0, nil at the end
	pread(p []byte, off int64) (int, error)
	write(p []byte) (int, error)
	seek(off int64, whence int) (int64, error)
	stat() (*Attr, error)
	truncate(size int64) error
	close() error
}

type entry struct {
	name string
	attr *Attr
}

// How many entries of one directory are read: a bound on memory, met by nothing
// that a person works with.
const maxEntries = 1_000_000

// errnoOf is the errno in err; EIO when there is none.
func errnoOf(err error) syscall.Errno {
	var errno syscall.Errno
	switch {
	case errors.As(err, &errno):
		return errno
	case errors.Is(err, fs.ErrClosed):
		return syscall.EBADF
	case errors.Is(err, fs.ErrNotExist):
		return syscall.ENOENT
	}
	return syscall.EIO
}

func isErr(err error, errno syscall.Errno) bool { return err != nil && errnoOf(err) == errno }

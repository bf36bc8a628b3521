// Package vfs is all the files that a hermetic session has: the workspace as
// "/", a /dev and a /tmp of its own, and nothing else of the machine.
package vfs

import (
	"io"
	"io/fs"
	"syscall"
	"time"
)

// Config says what a file system is made of.
type Config struct {
	Dir     string // the workspace, a directory of the host
	Overlay bool   // keep every change in memory and the workspace as it is

	// Written is told of every n bytes before they are written to a file; its
	// error refuses them. Nil: any number.
	Written func(n int64) error
	Memory  int64 // bytes that /tmp and an overlay may hold; 0: 256 MiB
	Files   int64 // files and directories in them; 0: 100,000
}

// FS is one session's file system. Every name is absolute inside ("/src/a.go").
// Errors are *fs.PathError or *os.LinkError over a syscall.Errno, and hold
// names inside only. Safe for concurrent use.
type FS struct{}

// File is an open file or directory.
type File interface {
	io.ReadWriteCloser
	io.Seeker
	io.ReaderAt
	Name() string // as it was opened
	Stat() (fs.FileInfo, error)
	Truncate(size int64) error
}

// Change is one difference that an overlay holds.
type Change struct {
	Kind byte   // 'A' added, 'M' modified (content, mode or kind), 'D' deleted
	Path string // "/src/a.go"
}

// Open makes a file system. The caller closes it.
func Open(Config) (*FS, error) { return nil, syscall.ENOSYS }

// Close gives up what the file system holds.
func (*FS) Close() error { return syscall.ENOSYS }

// Open opens name for reading; a directory, too.
func (*FS) Open(name string) (File, error) { return nil, syscall.ENOSYS }

// OpenFile is open(2): flags are those of package os. perm is used as it is:
// the caller has taken the umask off.
func (*FS) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	return nil, syscall.ENOSYS
}

// Stat follows links; Sys() is a *syscall.Stat_t whose owner is 1000, 1000.
func (*FS) Stat(name string) (fs.FileInfo, error) { return nil, syscall.ENOSYS }

// Lstat does not follow a link at the end.
func (*FS) Lstat(name string) (fs.FileInfo, error) { return nil, syscall.ENOSYS }

// ReadDir lists a directory, sorted by the bytes of the names.
func (*FS) ReadDir(name string) ([]fs.DirEntry, error) { return nil, syscall.ENOSYS }

// Access is access(2) for this user: mode is a sum of 4 (read), 2 (write) and 1
// (execute).
func (*FS) Access(name string, mode uint32) error { return syscall.ENOSYS }

// Resolve is realpath(3): the name without links, "." and "..". All of it
// exists.
func (*FS) Resolve(name string) (string, error) { return "", syscall.ENOSYS }

// Readlink reports what a link says.
func (*FS) Readlink(name string) (string, error) { return "", syscall.ENOSYS }

// Mkdir makes a directory.
func (*FS) Mkdir(name string, perm fs.FileMode) error { return syscall.ENOSYS }

// Remove is unlink(2) or rmdir(2).
func (*FS) Remove(name string) error { return syscall.ENOSYS }

// Rename is rename(2).
func (*FS) Rename(from, to string) error { return syscall.ENOSYS }

// Link makes a hard link.
func (*FS) Link(from, to string) error { return syscall.ENOSYS }

// Symlink makes a symbolic link at name that says target.
func (*FS) Symlink(target, name string) error { return syscall.ENOSYS }

// Chmod follows links.
func (*FS) Chmod(name string, mode fs.FileMode) error { return syscall.ENOSYS }

// Chtimes sets the times of access and modification; follow says whether of a
// link's target or of itself. A zero time leaves that one.
func (*FS) Chtimes(name string, atime, mtime time.Time, follow bool) error { return syscall.ENOSYS }

// Truncate sets the size of a file.
func (*FS) Truncate(name string, size int64) error { return syscall.ENOSYS }

// Changes lists what an overlay holds, sorted by path; nil without Overlay.
// /tmp and /dev are in it never.
func (*FS) Changes() ([]Change, error) { return nil, nil }

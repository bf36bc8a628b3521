//go:build !linux

package vfs

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// openDirAt opens the directory name; a link gives ENOTDIR.
func openDirAt(fd int, name string) (int, error) {
	got, err := openAt(fd, name, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err == unix.ELOOP {
		err = syscall.ENOTDIR
	}
	return got, err
}

// chmodAt never follows a link.
func chmodAt(fd int, name string, perm uint32) error {
	return again(func() error { return unix.Fchmodat(fd, name, perm, unix.AT_SYMLINK_NOFOLLOW) })
}

// stamp is a time for utimensat. Here is no way to leave one that works
// everywhere, so zero is now.
func stamp(t time.Time) unix.Timespec {
	if t.IsZero() {
		t = time.Now()
	}
	return unix.Timespec(timespec(t))
}

// notKernel knows no interfaces of other kernels: the worker itself runs on
// Linux only.
func notKernel(int) error { return nil }

//go:build !linux

package vfs

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

func (a *Attr) statT() *syscall.Stat_t {
	s := &syscall.Stat_t{Ino: a.Ino, Uid: a.Uid, Gid: a.Gid, Size: a.Size, Blocks: a.Blocks}
	put(&s.Dev, a.Dev)
	put(&s.Mode, a.Mode)
	put(&s.Rdev, a.Rdev)
	put(&s.Nlink, a.Nlink)
	put(&s.Blksize, a.Blksize)
	s.Atimespec, s.Mtimespec, s.Ctimespec = timespec(a.Atime), timespec(a.Mtime), timespec(a.Ctime)
	return s
}

// attrOf shows a file of the host as the session's own.
func attrOf(s *unix.Stat_t) *Attr {
	a := &Attr{Ino: s.Ino, Size: s.Size, Blocks: s.Blocks, Uid: owner, Gid: owner}
	put(&a.Dev, s.Dev)
	put(&a.Mode, s.Mode)
	put(&a.Rdev, s.Rdev)
	put(&a.Nlink, s.Nlink)
	put(&a.Blksize, s.Blksize)
	a.Atime, a.Mtime, a.Ctime = time.Unix(s.Atim.Unix()), time.Unix(s.Mtim.Unix()), time.Unix(s.Ctim.Unix())
	return a
}

package vfs

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

func (a *Attr) statT() *syscall.Stat_t {
	s := &syscall.Stat_t{Dev: a.Dev, Ino: a.Ino, Mode: a.Mode, Uid: a.Uid, Gid: a.Gid, Rdev: a.Rdev, Size: a.Size, Blocks: a.Blocks}
	put(&s.Nlink, a.Nlink)
	put(&s.Blksize, a.Blksize)
	s.Atim, s.Mtim, s.Ctim = timespec(a.Atime), timespec(a.Mtime), timespec(a.Ctime)
	return s
}

// attrOf shows a file of the host as the session's own.
func attrOf(s *unix.Stat_t) *Attr {
	a := &Attr{Dev: s.Dev, Ino: s.Ino, Mode: s.Mode, Rdev: s.Rdev, Size: s.Size, Blocks: s.Blocks, Uid: owner, Gid: owner}
	put(&a.Nlink, s.Nlink)
	put(&a.Blksize, s.Blksize)
	a.Atime, a.Mtime, a.Ctime = time.Unix(s.Atim.Unix()), time.Unix(s.Mtim.Unix()), time.Unix(s.Ctim.Unix())
	return a
}

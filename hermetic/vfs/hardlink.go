package vfs

import (
	"crypto/rand"
	"io"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// links knows the files all of whose names were made in this session.
//
// Threat: a file of the workspace has a second name outside it (a package store
// that hard-links into node_modules, a copied checkout, a hook of .git): a write
// here would change it there, and neither a path nor Landlock can tell -> before
// the first change to a file with several names, the name at hand gets a copy of
// its own, unless this session made all the names. Left over: two names that
// the workspace had from the start part at the first write, as git does it, too.
type links struct {
	mu    sync.Mutex
	names map[[2]uint64]uint64 // device and inode: how many names are known
}

// Beyond so many, links are parted when written to.
const maxLinks = 10_000

func (l *links) key(a *Attr) [2]uint64 { return [2]uint64{a.Dev, a.Ino} }

// whole reports whether every name of a is ours.
func (l *links) whole(a *Attr) bool {
	if a.Nlink <= 1 {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.names[l.key(a)] == a.Nlink
}

// add counts the name that link makes of a, which was looked at before.
func (l *links) add(a *Attr, link func() error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := link(); err != nil {
		return err
	}
	known := a.Nlink == 1 || l.names[l.key(a)] == a.Nlink
	if !known || a.Nlink == 1 && len(l.names) >= maxLinks {
		return nil
	}
	if l.names == nil {
		l.names = map[[2]uint64]uint64{}
	}
	l.names[l.key(a)] = a.Nlink + 1
	return nil
}

// gone counts one name less.
func (l *links) gone(a *Attr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := l.key(a)
	switch n := l.names[k]; {
	case n <= 2:
		delete(l.names, k)
	default:
		l.names[k] = n - 1
	}
}

// own makes sure that name can be changed without changing anything outside.
func (d *diskDir) own(name string) error {
	a, err := d.lstat(name)
	if err != nil || a.kind() != syscall.S_IFREG || d.t.links.whole(a) {
		return err
	}
	return d.part(name, a)
}

// part gives name a copy of its own.
func (d *diskDir) part(name string, a *Attr) error {
	from, err := openAt(d.fd, name, unix.O_RDONLY, 0)
	if err != nil {
		return err
	}
	src := newDiskFile(from)
	defer src.close()
	if now, err := src.stat(); err != nil || now.Dev != a.Dev || now.Ino != a.Ino {
		return firstErr(err, syscall.ELOOP)
	}
	temp := ".part-" + rand.Text()
	fd, err := openAt(d.fd, temp, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	dst := newDiskFile(fd)
	defer dst.close()
	err = d.copyTo(src, dst, temp, a)
	if err == nil {
		err = again(func() error { return unix.Renameat(d.fd, temp, d.fd, name) })
	}
	if err != nil {
		_ = unix.Unlinkat(d.fd, temp, 0)
	}
	return err
}

func (d *diskDir) copyTo(src, dst *diskFile, temp string, a *Attr) error {
	if d.t.write(a.Size) != nil {
		return syscall.ENOSPC
	}
	if _, err := io.Copy(dst.f, io.LimitReader(src.f, a.Size)); err != nil {
		return err
	}
	if err := dst.f.Chmod(a.fileMode() & 0o777); err != nil {
		return err
	}
	ts := []unix.Timespec{stamp(a.Atime), stamp(a.Mtime)}
	return unix.UtimesNanoAt(d.fd, temp, ts, unix.AT_SYMLINK_NOFOLLOW)
}

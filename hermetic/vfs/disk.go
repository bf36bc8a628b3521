package vfs

import (
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// disk is the workspace on the host.
//
// Threat: a script, another session in the same workspace or the host swaps a
// component for a link while a name is walked -> each step opens one plain
// component below an open directory and follows no link, the way os.Root goes,
// except that os.Root follows links that stay inside, with which a race could
// reach .git; os.Root opens the workspace itself. ".." is never given to the
// kernel. Left over: who moves a directory out of the workspace on the host
// while an operation in it is under way takes that operation along.
type disk struct {
	anchor *os.File
	fd     int    // of anchor
	dev    uint64 // of the workspace: where it changes, something is mounted
	made   atomic.Int64
	most   int64 // how many files and directories may be made
	links  links
	write  func(n int64) error // counts what a copy of ours writes
}

func openDisk(name string, most int64, write func(n int64) error) (*disk, error) {
	if name == "" {
		return nil, syscall.ENOENT
	}
	root, err := os.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	f, err := root.OpenFile(".", os.O_RDONLY|syscall.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	t := &disk{anchor: f, fd: int(f.Fd()), most: most, write: write}
	a, err := fstat(t.fd)
	if err == nil {
		t.dev = a.Dev
		err = notKernel(t.fd)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return t, nil
}

func (t *disk) close() { _ = t.anchor.Close() }

func (t *disk) root() (dir, error) {
	a, err := fstat(t.fd)
	if err != nil {
		return nil, err
	}
	return &diskDir{t: t, fd: t.fd, mode: a.Mode}, nil
}

// at opens the directory rel, which is clean and holds no links.
func (t *disk) at(rel string) (dir, error) {
	d, err := t.root()
	if err != nil || rel == "" {
		return d, err
	}
	for c := range strings.SplitSeq(rel, "/") {
		next, err := d.sub(c)
		d.close()
		if err != nil {
			return nil, err
		}
		d = next
	}
	return d, nil
}

// in calls use with the directory and the last component of rel; "" is ".".
func (t *disk) in(rel string, use func(d dir, leaf string) error) error {
	i := strings.LastIndexByte(rel, '/')
	d, err := t.at(rel[:max(i, 0)])
	if err != nil {
		return err
	}
	defer d.close()
	if rel == "" {
		return use(d, ".")
	}
	return use(d, rel[i+1:])
}

func (t *disk) lstatPath(rel string) (a *Attr, err error) {
	err = t.in(rel, func(d dir, leaf string) error {
		a, err = d.lstat(leaf)
		return err
	})
	return a, err
}

// make counts one new file.
//
// Threat: a loop of touch uses up the inodes of the host -> a bound. Left over:
// that many, each session anew.
func (t *disk) make() error {
	if t.made.Add(1) > t.most {
		return syscall.ENOSPC
	}
	return nil
}

type diskDir struct {
	t    *disk
	fd   int
	mode uint32
}

func (d *diskDir) tree() tree { return d.t }

func (d *diskDir) close() {
	if d.fd != d.t.fd {
		_ = unix.Close(d.fd)
	}
}

// can asks for permissions of the directory itself.
func (d *diskDir) can(want uint32) error {
	if !may(d.mode, want) {
		return syscall.EACCES
	}
	return nil
}

func (d *diskDir) sub(name string) (dir, error) {
	if err := d.can(1); err != nil {
		return nil, err
	}
	fd, err := openDirAt(d.fd, name)
	if err != nil {
		return nil, err
	}
	a, err := fstat(fd)
	if err == nil && a.Dev != d.t.dev {
		err = notKernel(fd)
	}
	if err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	return &diskDir{t: d.t, fd: fd, mode: a.Mode}, nil
}

func (d *diskDir) lstat(name string) (*Attr, error) {
	if err := d.can(1); err != nil && name != "." {
		return nil, err
	}
	var s unix.Stat_t
	err := again(func() error { return unix.Fstatat(d.fd, name, &s, unix.AT_SYMLINK_NOFOLLOW) })
	if err != nil {
		return nil, err
	}
	return attrOf(&s), nil
}

func (d *diskDir) readlink(name string) (string, error) {
	if err := d.can(1); err != nil {
		return "", err
	}
	b := make([]byte, maxPath+1)
	n, err := unix.Readlinkat(d.fd, name, b)
	if err != nil {
		return "", err
	}
	return string(b[:n]), nil
}

func (d *diskDir) list() ([]entry, error) {
	if err := d.can(4); err != nil {
		return nil, err
	}
	fd, err := openAt(d.fd, ".", unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "directory")
	defer f.Close()
	var all []entry
	for {
		names, err := f.Readdirnames(4096)
		for _, n := range names {
			// Gone since, or not to be searched: the name is all there is.
			a, err := d.lstat(n)
			if isErr(err, syscall.EACCES) {
				a = &Attr{Mode: syscall.S_IFREG, Uid: owner, Gid: owner}
			} else if err != nil {
				continue
			}
			all = append(all, entry{n, a})
		}
		switch {
		case len(names) == 0 && err != nil && errnoOf(err) != syscall.EIO:
			return nil, err
		case len(names) == 0:
			return all, nil
		case len(all) > maxEntries:
			return nil, syscall.ENOMEM
		}
	}
}

func (d *diskDir) access(name string, mode uint32) error {
	a, err := d.lstat(name)
	switch {
	case err != nil:
		return err
	case !may(a.Mode, mode):
		return syscall.EACCES
	}
	return again(func() error { return unix.Faccessat(d.fd, name, mode, 0) })
}

func (d *diskDir) mkdir(name string, perm uint32) error {
	if err := d.can(3); err != nil {
		return err
	}
	if err := d.t.make(); err != nil {
		return err
	}
	if err := again(func() error { return unix.Mkdirat(d.fd, name, perm) }); err != nil {
		return err
	}
	// The worker's own umask is not the script's.
	if a, err := d.lstat(name); err == nil && a.isDir() && a.Mode&0o1777 != perm {
		return chmodAt(d.fd, name, perm|a.Mode&syscall.S_ISGID)
	}
	return nil
}

func (d *diskDir) symlink(target, name string) error {
	if err := d.can(3); err != nil {
		return err
	}
	if err := d.t.make(); err != nil {
		return err
	}
	return again(func() error { return unix.Symlinkat(target, d.fd, name) })
}

func (d *diskDir) remove(name string) error {
	a, err := d.lstat(name)
	if err != nil {
		return err
	}
	if err := d.can(3); err != nil {
		return err
	}
	flags := 0
	if a.isDir() {
		flags = unix.AT_REMOVEDIR
	}
	if err := again(func() error { return unix.Unlinkat(d.fd, name, flags) }); err != nil {
		return err
	}
	d.t.links.gone(a)
	return nil
}

func (d *diskDir) chmod(name string, perm uint32) error {
	if err := d.own(name); err != nil {
		return err
	}
	return chmodAt(d.fd, name, perm)
}

func (d *diskDir) chtimes(name string, atime, mtime time.Time) error {
	if err := d.own(name); err != nil {
		return err
	}
	ts := []unix.Timespec{stamp(atime), stamp(mtime)}
	return again(func() error { return unix.UtimesNanoAt(d.fd, name, ts, unix.AT_SYMLINK_NOFOLLOW) })
}

func (t *disk) rename(from dir, name string, to dir, as string) error {
	a, b := from.(*diskDir), to.(*diskDir)
	was, err := a.lstat(name)
	if err != nil {
		return err
	}
	over, err := b.lstat(as)
	if err != nil && !isErr(err, syscall.ENOENT) {
		return err
	}
	if err := firstErr(a.can(3), b.can(3)); err != nil {
		return err
	}
	if err := again(func() error { return unix.Renameat(a.fd, name, b.fd, as) }); err != nil {
		return err
	}
	if over != nil && (over.Dev != was.Dev || over.Ino != was.Ino) {
		t.links.gone(over)
	}
	return nil
}

func (t *disk) link(from dir, name string, to dir, as string) error {
	a, b := from.(*diskDir), to.(*diskDir)
	was, err := a.lstat(name)
	switch {
	case err != nil:
		return err
	case was.isDir():
		return syscall.EPERM
	}
	if err := b.can(3); err != nil {
		return err
	}
	return t.links.add(was, func() error {
		return again(func() error { return unix.Linkat(a.fd, name, b.fd, as, 0) })
	})
}

func firstErr(all ...error) error {
	for _, err := range all {
		if err != nil {
			return err
		}
	}
	return nil
}

func fstat(fd int) (*Attr, error) {
	var s unix.Stat_t
	if err := again(func() error { return unix.Fstat(fd, &s) }); err != nil {
		return nil, err
	}
	return attrOf(&s), nil
}

// again repeats a call that a signal broke off.
func again(call func() error) error {
	for {
		if err := call(); err != syscall.EINTR {
			return err
		}
	}
}

func openAt(fd int, name string, flags int, perm uint32) (got int, err error) {
	err = again(func() error {
		got, err = unix.Openat(fd, name, flags|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC|unix.O_NOCTTY, perm)
		return err
	})
	return got, err
}

package vfs

import (
	"syscall"
	"time"
)

// within reports whether n is d or below it.
func within(n, d *node) bool {
	for ; n != nil; n = n.parent {
		if n == d {
			return true
		}
	}
	return false
}

func (t *mem) rename(from dir, name string, to dir, as string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	fd, td := from.(*memDir).n, to.(*memDir).n
	f, err := t.find(fd, name)
	if err != nil {
		return err
	}
	f.refs++
	defer t.let(f)
	over, err := t.find(td, as)
	if err != nil && !isErr(err, syscall.ENOENT) {
		return err
	}
	if over != nil {
		over.refs++
		defer t.let(over)
	}
	if !may(fd.attr.Mode, 3) || !may(td.attr.Mode, 3) {
		return syscall.EACCES
	}
	if err := t.mayReplace(f, fd, td, over); err != nil || f == over {
		return err
	}
	if err := firstErr(t.claim(fd), t.claim(td), t.claim(f), t.room.has(2*nodeCost)); err != nil {
		return err
	}
	if over != nil {
		if err := t.cut(td, as); err != nil {
			return err
		}
		t.unname(td, over)
	}
	if err := t.cut(fd, name); err != nil {
		return err
	}
	if f.attr.isDir() {
		fd.attr.Nlink = max(fd.attr.Nlink-1, 2)
		td.attr.Nlink++
	}
	f.parent, f.name = td, as
	f.attr.Ctime = time.Now()
	t.put(td, as, f)
	t.touch(td)
	return nil
}

func (t *mem) mayReplace(f, fd, td, over *node) error {
	if td.attr.Nlink == 0 {
		return syscall.ENOENT
	}
	if f.attr.isDir() && within(td, f) {
		return syscall.EINVAL
	}
	if over != nil && within(fd, over) {
		return syscall.ENOTEMPTY
	}
	switch {
	case over == nil || over == f:
		return nil
	case f.attr.isDir() && !over.attr.isDir():
		return syscall.ENOTDIR
	case !f.attr.isDir() && over.attr.isDir():
		return syscall.EISDIR
	case over.attr.isDir():
		return t.empty(over)
	}
	return nil
}

// empty refuses a directory that has something in it.
func (t *mem) empty(n *node) error {
	names, err := t.names(n)
	if err == nil && len(names) > 0 {
		err = syscall.ENOTEMPTY
	}
	return err
}

func (t *mem) link(from dir, name string, to dir, as string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	fd, td := from.(*memDir).n, to.(*memDir).n
	f, err := t.find(fd, name)
	if err != nil {
		return err
	}
	f.refs++
	defer t.let(f)
	switch {
	case td.attr.Nlink == 0:
		return syscall.ENOENT
	case !may(td.attr.Mode, 3):
		return syscall.EACCES
	}
	cost := int64(nodeCost + len(as))
	if err := firstErr(t.claim(td), t.claim(f), t.room.take(cost)); err != nil {
		return err
	}
	f.cost += cost
	f.attr.Nlink++
	f.attr.Ctime = time.Now()
	t.put(td, as, f)
	t.touch(td)
	return nil
}

package vfs

import (
	"syscall"
	"time"
)

// memDir is an open directory of a mem.
type memDir struct {
	t *mem
	n *node
}

func (d *memDir) tree() tree { return d.t }

func (d *memDir) close() {
	d.t.mu.Lock()
	defer d.t.mu.Unlock()
	d.t.let(d.n)
}

// with calls do with the child name, or the directory itself for ".".
func (d *memDir) with(name string, do func(c *node) error) error {
	d.t.mu.Lock()
	defer d.t.mu.Unlock()
	c := d.n
	if name != "." {
		if !may(d.n.attr.Mode, 1) {
			return syscall.EACCES
		}
		var err error
		if c, err = d.t.find(d.n, name); err != nil {
			return err
		}
	}
	c.refs++
	defer d.t.let(c)
	return do(c)
}

func (d *memDir) sub(name string) (dir, error) {
	var s *memDir
	err := d.with(name, func(c *node) error {
		if !c.attr.isDir() {
			return syscall.ENOTDIR
		}
		c.refs++
		s = &memDir{d.t, c}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

func (d *memDir) lstat(name string) (a *Attr, err error) {
	err = d.with(name, func(c *node) error {
		a = c.shown()
		return nil
	})
	return a, err
}

func (d *memDir) readlink(name string) (target string, err error) {
	err = d.with(name, func(c *node) error {
		if c.attr.kind() != syscall.S_IFLNK {
			return syscall.EINVAL
		}
		target = c.target
		return nil
	})
	return target, err
}

func (d *memDir) list() (all []entry, err error) {
	d.t.mu.Lock()
	defer d.t.mu.Unlock()
	if !may(d.n.attr.Mode, 4) {
		return nil, syscall.EACCES
	}
	for name, c := range d.n.children {
		if c != nil {
			all = append(all, entry{name, c.shown()})
		}
	}
	if !d.n.hasLower || d.n.attr.Nlink == 0 {
		return all, nil
	}
	below, err := d.t.below(d.n.lower)
	for _, e := range below {
		if _, known := d.n.children[e.name]; !known {
			all = append(all, e)
		}
	}
	return all, err
}

func (d *memDir) access(name string, mode uint32) error {
	return d.with(name, func(c *node) error {
		if !may(c.attr.Mode, mode) {
			return syscall.EACCES
		}
		return nil
	})
}

// fresh makes c the child name.
func (d *memDir) fresh(name string, c *node) error {
	switch err := d.t.has(d.n, name); {
	case err == nil:
		return syscall.EEXIST
	case !isErr(err, syscall.ENOENT):
		return err
	case d.n.attr.Nlink == 0:
		return syscall.ENOENT
	case !may(d.n.attr.Mode, 3):
		return syscall.EACCES
	}
	return d.t.add(d.n, name, c)
}

func (d *memDir) mkdir(name string, perm uint32) error {
	d.t.mu.Lock()
	defer d.t.mu.Unlock()
	return d.fresh(name, d.t.node(syscall.S_IFDIR|perm))
}

func (d *memDir) symlink(target, name string) error {
	d.t.mu.Lock()
	defer d.t.mu.Unlock()
	c := d.t.node(syscall.S_IFLNK | 0o777)
	c.target = target
	return d.fresh(name, c)
}

func (d *memDir) remove(name string) error {
	return d.with(name, func(c *node) error {
		if !may(d.n.attr.Mode, 3) {
			return syscall.EACCES
		}
		if c.attr.isDir() {
			if err := d.t.empty(c); err != nil {
				return err
			}
		}
		if err := d.t.cut(d.n, name); err != nil {
			return err
		}
		d.t.unname(d.n, c)
		return nil
	})
}

func (d *memDir) chmod(name string, perm uint32) error {
	return d.with(name, func(c *node) error {
		if err := d.t.claim(c); err != nil {
			return err
		}
		c.attr.Mode = c.attr.kind() | perm
		c.attr.Ctime = time.Now()
		return nil
	})
}

func (d *memDir) chtimes(name string, atime, mtime time.Time) error {
	return d.with(name, func(c *node) error {
		if err := d.t.claim(c); err != nil {
			return err
		}
		if !atime.IsZero() {
			c.attr.Atime = atime
		}
		if !mtime.IsZero() {
			c.attr.Mtime = mtime
		}
		c.attr.Ctime = time.Now()
		return nil
	})
}

func (d *memDir) open(name string, flag int, perm uint32) (handle, error) {
	var h handle
	err := d.with(name, func(c *node) (err error) {
		h, err = d.t.openNode(c, flag)
		return err
	})
	if !isErr(err, syscall.ENOENT) || flag&syscall.O_CREAT == 0 {
		return h, err
	}
	d.t.mu.Lock()
	defer d.t.mu.Unlock()
	c := d.t.node(syscall.S_IFREG | perm)
	if err := d.fresh(name, c); err != nil {
		return nil, err
	}
	return d.t.handle(c, flag), nil
}

func (t *mem) openNode(c *node, flag int) (handle, error) {
	if err := mayOpen(&c.attr, flag); err != nil {
		return nil, err
	}
	if c.attr.isDir() {
		return &dirHandle{c.shown()}, nil
	}
	if c.hasLower && c.data.base == nil && c.data.below > 0 && flag&syscall.O_TRUNC == 0 {
		err := t.lower.in(c.lower, func(d dir, leaf string) (err error) {
			c.data.base, err = d.open(leaf, syscall.O_RDONLY, 0)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	h := t.handle(c, flag)
	if flag&syscall.O_TRUNC != 0 {
		if err := h.truncate0(0); err != nil {
			t.let(c)
			return nil, err
		}
	}
	return h, nil
}

func (t *mem) handle(c *node, flag int) *memFile {
	c.refs++
	return &memFile{t: t, n: c, append: flag&syscall.O_APPEND != 0}
}

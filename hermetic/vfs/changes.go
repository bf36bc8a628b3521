package vfs

import (
	"bytes"
	"slices"
	"strings"
	"syscall"
)

// changes compares what the overlay shows with the disk below.
func (t *mem) changes() ([]Change, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := &comparison{t: t}
	if t.top.attr.Mode != t.base("").Mode {
		c.say('M', "")
	}
	if err := c.dir(t.top, ""); err != nil {
		return nil, err
	}
	slices.SortFunc(c.all, func(a, b Change) int { return strings.Compare(a.Path, b.Path) })
	return c.all, nil
}

func (t *mem) base(rel string) Attr {
	a, err := t.lower.lstatPath(rel)
	if err != nil {
		return Attr{}
	}
	return *a
}

type comparison struct {
	t   *mem
	all []Change
}

func (c *comparison) say(kind byte, rel string) { c.all = append(c.all, Change{kind, "/" + rel}) }

// dir compares the directory n, which is at rel, with a directory below.
func (c *comparison) dir(n *node, rel string) error {
	same := n.hasLower && n.lower == rel
	below, err := c.t.below(rel)
	if err != nil {
		return err
	}
	was := map[string]*Attr{}
	for _, e := range below {
		was[e.name] = e.attr
		if child, known := n.children[e.name]; same && !known || known && child != nil {
			continue
		}
		if c.t.has(n, e.name) != nil {
			if err := c.gone(join(rel, e.name), e.attr); err != nil {
				return err
			}
		}
	}
	names := make([]string, 0, len(n.children))
	for name, child := range n.children {
		if child != nil {
			names = append(names, name)
		}
	}
	if !same {
		if names, err = c.t.names(n); err != nil {
			return err
		}
	}
	for _, name := range names {
		if err := c.child(n, name, join(rel, name), was[name]); err != nil {
			return err
		}
	}
	return nil
}

// child compares one name; was is what is below, nil for nothing.
func (c *comparison) child(n *node, name, rel string, was *Attr) error {
	now, err := c.t.find(n, name)
	if err != nil {
		return err
	}
	now.refs++
	defer c.t.let(now)
	switch {
	case was == nil:
		return c.new(now, rel)
	case was.kind() != now.attr.kind():
		c.say('M', rel)
		if was.isDir() {
			return c.inside(rel)
		}
		if now.attr.isDir() {
			return c.newInside(now, rel)
		}
		return nil
	}
	same, err := c.same(now, rel, was)
	if err != nil {
		return err
	}
	if !same {
		c.say('M', rel)
	}
	if now.attr.isDir() {
		return c.dir(now, rel)
	}
	return nil
}

// new reports now and all in it.
func (c *comparison) new(now *node, rel string) error {
	c.say('A', rel)
	if now.attr.isDir() {
		return c.newInside(now, rel)
	}
	return nil
}

func (c *comparison) newInside(now *node, rel string) error {
	names, err := c.t.names(now)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := c.child(now, name, join(rel, name), nil); err != nil {
			return err
		}
	}
	return nil
}

// gone reports what is not there any more, and all that was in it.
func (c *comparison) gone(rel string, was *Attr) error {
	c.say('D', rel)
	if was.isDir() {
		return c.inside(rel)
	}
	return nil
}

func (c *comparison) inside(rel string) error {
	below, err := c.t.below(rel)
	if err != nil {
		return err
	}
	for _, e := range below {
		if err := c.gone(join(rel, e.name), e.attr); err != nil {
			return err
		}
	}
	return nil
}

// same compares mode and content with what was at rel.
func (c *comparison) same(now *node, rel string, was *Attr) (bool, error) {
	if now.attr.Mode != was.Mode {
		return false, nil
	}
	if !now.dirty && now.lower == rel {
		return true, nil
	}
	switch was.kind() {
	case syscall.S_IFLNK:
		var target string
		err := c.t.lower.in(rel, func(d dir, leaf string) (err error) {
			target, err = d.readlink(leaf)
			return err
		})
		return target == now.target, err
	case syscall.S_IFREG:
		return c.sameBytes(now, rel, was)
	}
	return was.isDir() || now.lower == rel, nil
}

func (c *comparison) sameBytes(now *node, rel string, was *Attr) (bool, error) {
	if now.data.size != was.Size {
		return false, nil
	}
	var old handle
	err := c.t.lower.in(rel, func(d dir, leaf string) (err error) {
		old, err = d.open(leaf, syscall.O_RDONLY, 0)
		return err
	})
	if err != nil {
		return false, err
	}
	defer old.close()
	mine, err := c.t.openNode(now, syscall.O_RDONLY)
	if err != nil {
		return false, err
	}
	defer c.t.let(now)
	h := mine.(*memFile)
	a, b := make([]byte, chunk), make([]byte, chunk)
	for off := int64(0); off < was.Size; off += chunk {
		n := min(chunk, was.Size-off)
		clear(a[:n])
		if err := (&content{base: old}).fill(a[:n], off); err != nil {
			return false, err
		}
		if _, err := h.n.data.pread(b[:n], off); err != nil {
			return false, err
		}
		if !bytes.Equal(a[:n], b[:n]) {
			return false, nil
		}
	}
	return true, nil
}

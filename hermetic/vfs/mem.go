package vfs

import (
	"sync"
	"syscall"
	"time"
)

// mem is a tree in memory: a /tmp, or an overlay. With a lower disk, what is not
// in memory is read from there and copied when it is changed; the disk itself
// stays as it is.
type mem struct {
	mu    sync.Mutex // guards everything below, and every node
	top   *node
	room  *room
	dev   uint64
	ino   uint64
	files int64 // that still may be made
	lower *disk // nil: nothing below
}

// room is the memory that the trees of one session share.
type room struct {
	mu    sync.Mutex
	bytes int64
}

// take asks for n bytes; a negative n gives back.
func (r *room) take(n int64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n > r.bytes {
		return syscall.ENOSPC
	}
	r.bytes -= n
	return nil
}

// has reports whether n bytes are left.
func (r *room) has(n int64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n > r.bytes {
		return syscall.ENOSPC
	}
	return nil
}

// node is one file, directory or link: a dirty one is in memory for good, a
// clean one only stands for what is below and is dropped when nobody holds it.
type node struct {
	attr     Attr // of files and directories in memory: without size
	dirty    bool
	refs     int // dirs and files that are open on it
	parent   *node
	name     string // in parent; of a file with several names, one of them
	lower    string // where it is on the lower disk, when hasLower
	hasLower bool
	children map[string]*node // nil values hide what is below
	target   string
	data     content
	counted  bool  // takes one of files
	cost     int64 // what its end gives back to room
}

// What a node, or a name that hides one below, costs of memory.
const nodeCost = 512

func newMem(dev uint64, r *room, files int64) *mem {
	t := &mem{room: r, dev: dev, files: files}
	t.top = t.node(syscall.S_IFDIR | 0o755)
	t.top.attr.Nlink, t.top.dirty, t.top.refs = 2, true, 1
	if dev == devTmp {
		t.top.attr.Mode = syscall.S_IFDIR | syscall.S_ISVTX | 0o777
	}
	return t
}

// adopt takes the root's attributes from below.
func (t *mem) adopt() error {
	a, err := t.lower.lstatPath("")
	if err == nil {
		t.top.attr = *a
	}
	return err
}

func (t *mem) node(mode uint32) *node {
	t.ino++
	now := time.Now()
	return &node{attr: Attr{
		Dev: t.dev, Ino: t.ino, Nlink: 1, Mode: mode, Uid: owner, Gid: owner,
		Blksize: 4096, Atime: now, Mtime: now, Ctime: now,
	}}
}

func join(d, name string) string {
	if d == "" {
		return name
	}
	return d + "/" + name
}

// find is the child of n, which stays only as long as somebody holds it.
func (t *mem) find(n *node, name string) (*node, error) {
	if n.attr.Nlink == 0 {
		return nil, syscall.ENOENT
	}
	if c, ok := n.children[name]; ok {
		if c == nil {
			return nil, syscall.ENOENT
		}
		return c, nil
	}
	if !n.hasLower {
		return nil, syscall.ENOENT
	}
	rel := join(n.lower, name)
	a, err := t.lower.lstatPath(rel)
	if err != nil {
		return nil, err
	}
	c := &node{attr: *a, parent: n, name: name, lower: rel, hasLower: true}
	if !a.isDir() {
		c.attr.Nlink = 1 // other names below stand for themselves
	}
	switch a.kind() {
	case syscall.S_IFLNK:
		err = t.lower.in(rel, func(d dir, leaf string) error {
			c.target, err = d.readlink(leaf)
			return err
		})
	case syscall.S_IFREG:
		c.data.size, c.data.below = a.Size, a.Size
	}
	if err != nil {
		return nil, err
	}
	t.put(n, name, c)
	return c, nil
}

func (t *mem) put(n *node, name string, c *node) {
	if n.children == nil {
		n.children = map[string]*node{}
	}
	if was, hidden := n.children[name]; hidden && was == nil {
		n.cost -= nodeCost
		_ = t.room.take(-nodeCost)
	}
	n.children[name] = c
}

// drop forgets clean nodes that nobody holds, from n upwards.
func (t *mem) drop(n *node) {
	for n != nil && n.refs == 0 && !n.dirty && len(n.children) == 0 && n.parent != nil {
		p := n.parent
		if p.children[n.name] == n {
			delete(p.children, n.name)
		}
		n.parent = nil
		n = p
	}
}

// let gives up one hold on n.
func (t *mem) let(n *node) {
	n.refs--
	if n.refs > 0 {
		return
	}
	n.data.closeBase()
	if n.attr.Nlink == 0 {
		t.end(n)
		return
	}
	t.drop(n)
}

// end gives back what n took.
func (t *mem) end(n *node) {
	if n.counted {
		t.files++
	}
	_ = t.room.take(-n.cost - n.data.drop())
	n.cost, n.counted = 0, false
}

// claim makes room for n to be kept in memory.
//
// Threat: a script changes the mode of a million files below an overlay, or
// makes as many empty ones -> every node that stays has its price, and there is
// a number of them. Left over: names that are only looked at are held for
// the look.
func (t *mem) claim(n *node) error {
	if n.dirty {
		return nil
	}
	if t.files <= 0 {
		return syscall.ENOSPC
	}
	cost := int64(nodeCost + len(n.name) + len(n.target))
	if err := t.room.take(cost); err != nil {
		return err
	}
	t.files--
	n.dirty, n.counted, n.cost = true, true, n.cost+cost
	return nil
}

// add makes a new child.
func (t *mem) add(n *node, name string, c *node) error {
	c.parent, c.name = n, name
	if err := firstErr(t.claim(n), t.claim(c)); err != nil {
		return err
	}
	t.put(n, name, c)
	if c.attr.isDir() {
		c.attr.Nlink = 2
		n.attr.Nlink++
	}
	t.touch(n)
	return nil
}

// touch notes that a directory has changed.
func (t *mem) touch(n *node) {
	n.attr.Mtime = time.Now()
	n.attr.Ctime = n.attr.Mtime
}

// cut takes the name away and hides what is below it; the node keeps living for
// who holds it, or gets another name.
func (t *mem) cut(n *node, name string) error {
	if err := t.claim(n); err != nil {
		return err
	}
	delete(n.children, name)
	if n.hasLower && t.covers(n, name) {
		if err := t.room.take(nodeCost); err != nil {
			return err
		}
		n.cost += nodeCost
		t.put(n, name, nil)
	}
	t.touch(n)
	return nil
}

// covers reports whether the lower directory has that name.
func (t *mem) covers(n *node, name string) bool {
	_, err := t.lower.lstatPath(join(n.lower, name))
	return err == nil
}

// unname takes one name off c, which was cut.
func (t *mem) unname(n, c *node) {
	c.attr.Ctime = time.Now()
	if c.attr.isDir() {
		n.attr.Nlink = max(n.attr.Nlink-1, 2)
		c.attr.Nlink = 0
	} else {
		c.attr.Nlink--
	}
	if c.attr.Nlink == 0 && c.refs == 0 {
		t.end(c)
	}
}

// names are the children of n, those below included.
func (t *mem) names(n *node) ([]string, error) {
	all := make([]string, 0, len(n.children))
	for name, c := range n.children {
		if c != nil {
			all = append(all, name)
		}
	}
	if !n.hasLower {
		return all, nil
	}
	below, err := t.below(n.lower)
	for _, e := range below {
		if _, known := n.children[e.name]; !known {
			all = append(all, e.name)
		}
	}
	return all, err
}

// below lists a directory of the lower disk.
func (t *mem) below(rel string) ([]entry, error) {
	d, err := t.lower.at(rel)
	if err != nil {
		return nil, err
	}
	defer d.close()
	return d.list()
}

// shown is what stat says of n.
func (n *node) shown() *Attr {
	a := n.attr
	switch a.kind() {
	case syscall.S_IFREG:
		a.Size = n.data.size
		a.Blocks = blocks(min(a.Size, 1<<60))
	case syscall.S_IFLNK:
		a.Size = int64(len(n.target))
	case syscall.S_IFDIR:
		if a.Size == 0 {
			a.Size = 4096
		}
	}
	return &a
}

func (t *mem) lstatTop() *Attr {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.top.shown()
}

// has reports whether n has a child of that name, and holds on to nothing.
func (t *mem) has(n *node, name string) error {
	c, err := t.find(n, name)
	if err == nil {
		c.refs++
		t.let(c)
	}
	return err
}

func (t *mem) root() (dir, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.top.refs++
	return &memDir{t, t.top}, nil
}

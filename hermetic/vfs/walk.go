package vfs

import (
	"slices"
	"strings"
	"syscall"
)

const (
	maxHops = 40 // links on one way, as Linux has it
	maxName = 255
	maxPath = 4096
)

// How a walk treats the last component.
const (
	follow   = 1 << iota // a link there is followed
	creating             // the operation makes what is not there
)

// place is where a walk ended: a directory, and a name in it that need not
// exist. The holder closes it.
type place struct {
	d     dir
	leaf  string   // "." is d itself
	at    []string // how d is called, without links
	slash bool     // the name ended in a slash: only a directory will do
	mount bool     // d is the root of /tmp or /dev, and leaf is "."
	git   bool     // a link called .git led here

	protect []string // see Config
}

func (p *place) close() { p.d.close() }

// path is the name without links.
func (p *place) path() string {
	s := "/" + strings.Join(p.at, "/")
	if p.leaf == "." {
		return s
	}
	return strings.TrimSuffix(s, "/") + "/" + p.leaf
}

// readOnly reports whether the place is .git or in it, or protected. What is in
// /tmp is out of the workspace and free.
func (p *place) readOnly() bool {
	if len(p.at) > 0 && p.at[0] == "tmp" {
		return false
	}
	if p.git || dotGit(p.leaf) || slices.ContainsFunc(p.at, dotGit) {
		return true
	}
	if len(p.protect) == 0 {
		return false
	}
	path := p.path()
	return slices.ContainsFunc(p.protect, func(kept string) bool {
		return path == kept || strings.HasPrefix(path, kept+"/")
	})
}

// holdsProtected reports whether something protected is below the place: it
// can't be moved away with it.
func (p *place) holdsProtected() bool {
	if len(p.protect) == 0 {
		return false
	}
	below := strings.TrimSuffix(p.path(), "/") + "/"
	return slices.ContainsFunc(p.protect, func(kept string) bool { return strings.HasPrefix(kept, below) })
}

// walker is one walk under way.
type walker struct {
	f    *FS
	d    dir
	at   []string
	rest []string // components to come
	hops int
	git  bool // a link called .git was followed
}

// walk goes along name. The caller has entered.
func (f *FS) walk(name string, how int) (*place, error) {
	switch {
	case name == "":
		return nil, syscall.ENOENT
	case strings.IndexByte(name, 0) >= 0:
		return nil, syscall.EINVAL
	case len(name) >= maxPath:
		return nil, syscall.ENAMETOOLONG
	}
	d, err := f.work.root()
	if err != nil {
		return nil, err
	}
	w := &walker{f: f, d: d, rest: components(name)}
	p, err := w.run(how, strings.HasSuffix(name, "/"))
	if err != nil {
		w.d.close()
		return nil, err
	}
	return p, nil
}

// components splits at slashes; "." and nothing stay only as the last one:
// "a/." is the directory itself.
func components(name string) []string {
	all := strings.Split(strings.Trim(name, "/"), "/")
	out := all[:0]
	for i, c := range all {
		if c != "" && c != "." || i == len(all)-1 && c == "." {
			out = append(out, c)
		}
	}
	return out
}

func (w *walker) run(how int, slash bool) (*place, error) {
	for len(w.rest) > 0 {
		c := w.rest[0]
		w.rest = w.rest[1:]
		if len(c) > maxName {
			return nil, syscall.ENAMETOOLONG
		}
		switch {
		case c == ".":
			continue
		case c == "..":
			if err := w.up(); err != nil {
				return nil, err
			}
			continue
		case len(w.rest) > 0:
			if err := w.down(c); err != nil {
				return nil, err
			}
			continue
		case slash && how == follow|creating:
			return nil, syscall.EISDIR // no file can be made at "name/"
		}
		if mount, err := w.enter(c, how); err != nil {
			return nil, err
		} else if mount {
			return w.place(".", slash, true), nil
		}
		if how&follow == 0 && (!slash || how&creating != 0) {
			return w.place(c, slash, false), nil
		}
		target, err := w.d.readlink(c)
		switch {
		case err == nil:
			slash = slash || strings.HasSuffix(target, "/")
			if err := w.jump(c, target); err != nil {
				return nil, err
			}
		case isErr(err, syscall.EINVAL), isErr(err, syscall.ENOENT):
			return w.place(c, slash, false), nil
		default:
			return nil, err
		}
	}
	return w.place(".", slash, false), nil
}

func (w *walker) place(leaf string, slash, mount bool) *place {
	return &place{d: w.d, leaf: leaf, at: w.at, slash: slash, mount: mount, git: w.git, protect: w.f.protect}
}

// enter steps onto /tmp or /dev when c, the last component, names one.
func (w *walker) enter(c string, how int) (bool, error) {
	if len(w.at) > 0 || c != "tmp" && c != "dev" {
		return false, nil
	}
	if c == "dev" {
		if how&creating != 0 {
			return false, nil
		}
		if _, err := w.d.lstat(c); !isErr(err, syscall.ENOENT) {
			return false, nil
		}
	}
	next, err := w.f.step(w.d, w.at, c, "")
	if err != nil {
		return false, err
	}
	w.to(next, c)
	return true, nil
}

func (w *walker) to(next dir, name string) {
	w.d.close()
	w.d = next
	w.at = append(w.at[:len(w.at):len(w.at)], name)
}

// down steps into c, through a link as well.
func (w *walker) down(c string) error {
	next, err := w.f.step(w.d, w.at, c, w.rest[0])
	if err == nil {
		w.to(next, c)
		return nil
	}
	if !isErr(err, syscall.ENOTDIR) {
		return err
	}
	target, lerr := w.d.readlink(c)
	if lerr != nil {
		return err
	}
	return w.jump(c, target)
}

// jump puts the target of the link c before what is to come.
func (w *walker) jump(c, target string) error {
	w.git = w.git || dotGit(c)
	w.hops++
	switch {
	case w.hops > maxHops:
		return syscall.ELOOP
	case target == "":
		return syscall.ENOENT
	}
	if target[0] == '/' {
		if err := w.again(nil); err != nil {
			return err
		}
	}
	w.rest = append(components(target), w.rest...)
	return nil
}

// up is "..": it goes again to where the parent was reached.
func (w *walker) up() error {
	if len(w.at) == 0 {
		return nil
	}
	return w.again(w.at[:len(w.at)-1])
}

// again walks from the root along at, which holds no link.
func (w *walker) again(at []string) error {
	d, err := w.f.work.root()
	if err != nil {
		return err
	}
	for i, c := range at {
		after := ""
		if i+1 < len(at) {
			after = at[i+1]
		}
		next, err := w.f.step(d, at[:i], c, after)
		d.close()
		if err != nil {
			return err
		}
		d = next
	}
	w.d.close()
	w.d, w.at = d, at
	return nil
}

// step is the directory c in d, which is called at; after is the component that
// follows.
func (f *FS) step(d dir, at []string, c, after string) (dir, error) {
	if len(at) > 0 {
		return d.sub(c)
	}
	switch c {
	case "tmp":
		return f.tmp.root()
	case "dev":
		if isDevice(after) {
			return &devDir{f: f}, nil
		}
		next, err := d.sub(c)
		if isErr(err, syscall.ENOENT) {
			return &devDir{f: f}, nil
		}
		return next, err
	}
	return d.sub(c)
}

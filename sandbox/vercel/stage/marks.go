package stage

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
)

// mark identifies a path's contents in a few bytes; "" if they are unknown.
func (e *Entry) mark() string {
	switch {
	case e.shared:
		return ""
	case e.Mode.IsDir():
		return "d"
	case e.Mode.Type() == fs.ModeSymlink:
		return "l" + e.Link
	case e.Mode.IsRegular():
		return fmt.Sprintf("f%o ", e.Mode.Perm()&^othersWrite) + hex.EncodeToString(e.sum[:])
	}
	return ""
}

// Marks reports by path what the other side has after sending, in words to
// Compare with later.
func (t *Tree) Marks() map[string]string {
	marks := make(map[string]string, len(t.entries))
	for name, e := range t.entries {
		if m := e.mark(); m != "" && (!e.Mode.IsRegular() || e.sent) {
			marks[name] = m
		}
	}
	return marks
}

// There reports the marks of what Compare found there.
func (t *Tree) There() map[string]string {
	marks := map[string]string{}
	for name, e := range t.entries {
		if e.there {
			marks[name] = e.mark()
		}
	}
	return marks
}

// Compare determines which entries the other side already has, according to
// marks, and removes them from Entries. gone are the paths of marks that are not
// here any more, or have become something else, and that have to go there; dirs
// are directories that may have become empty by it, the deepest first.
func (t *Tree) Compare(ctx context.Context, marks map[string]string) (gone, dirs []string, err error) {
	empty := map[string]bool{}
	for name, mark := range marks {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		if mark == "" || badName(name) != "" {
			continue
		}
		e := t.entries[name]
		switch {
		case e == nil && t.stays(name, mark), e != nil && e.shared:
		case e != nil && kind(e.mark()) == mark[0]:
			if err := t.compare(e, mark); err != nil {
				return nil, nil, err
			}
		case mark[0] == 'd':
			empty[name] = true
		default:
			gone = append(gone, name)
			for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
				empty[dir] = true
			}
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(empty)) {
		if info, err := t.root.Lstat(dir); err != nil || !info.IsDir() {
			dirs = append(dirs, dir)
		}
	}
	slices.Reverse(dirs)
	slices.Sort(gone)
	return gone, dirs, nil
}

// Lost records that the other side no longer has these paths.
func (t *Tree) Lost(names []string) {
	for _, name := range names {
		if e := t.entries[name]; e != nil && e.there {
			e.there, e.sent = false, false
		}
	}
}

func kind(mark string) byte {
	if mark == "" {
		return 0
	}
	return mark[0]
}

// stays reports whether a path that is not sent is here all the same: in a
// directory that .gitignore names, or a directory that holds something by now.
func (t *Tree) stays(name, mark string) bool {
	info, err := t.root.Lstat(name)
	if err != nil {
		return false
	}
	return info.IsDir() == (mark[0] == 'd')
}

// compare notes whether the other side has e.
func (t *Tree) compare(e *Entry, mark string) error {
	if e.Mode.IsRegular() {
		f, err := t.Open(e.Path)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, f)
		f.Close()
		if err != nil {
			return err
		}
	}
	e.there = e.mark() == mark
	e.sent = e.sent && e.there
	return nil
}

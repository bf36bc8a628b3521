package watch

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
)

// What is at a path.
const (
	missing    = iota
	unreadable // it exists, and its state cannot be read
	irregular  // a pipe, a device, a directory: never reported as changed
	regular
)

// state is what can be seen of a file without reading it. Any write changes it:
// the kernel stamps ctime, which nobody can set.
type state struct {
	kind         uint8
	dev, ino     uint64
	size         int64
	mtime, ctime int64 // ns
	writing      bool  // it is known to be open for writing
}

// same compares contents: a writer that is gone is not a change.
func (s state) same(other state) bool {
	s.writing, other.writing = false, false
	return s == other
}

// entry is one name in a directory.
type entry struct{ dir, name string }

// scanner finds the states of the files, and watches where they are.
type scanner struct {
	paths    []string
	src      source
	log      *slog.Logger
	orphaned map[string]bool // already logged
}

// scan places the watches first, so that the kernel reports what changes after the
// scan.
func (l *scanner) scan() (seen []state, notified bool) {
	var names []entry
	finals := make([]entry, len(l.paths))
	for i, p := range l.paths {
		at := trail(p)
		names = append(names, at...)
		if len(at) > 0 {
			finals[i] = at[len(at)-1]
		}
	}
	notified = l.src.place(l.paths, names)
	for i, p := range l.paths {
		s, links := examine(p)
		s.writing = s.kind == regular && l.src.writing(p, finals[i], links)
		l.orphan(p, s.kind == regular && links == 0)
		seen = append(seen, s)
	}
	return seen, notified
}

// orphan logs once that a path still leads to a file whose last name is gone.
func (l *scanner) orphan(path string, is bool) {
	if is && !l.orphaned[path] {
		l.log.Warn("this file was replaced outside of its mount, which still shows the old one: mount the directory that holds it instead", "file", path)
	}
	if l.orphaned == nil {
		l.orphaned = make(map[string]bool)
	}
	l.orphaned[path] = is
}

// examine reports the state of the file that path leads to, and how many names
// it has.
func examine(path string) (s state, links uint64) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return state{kind: missing}, 1
	case err != nil:
		return state{kind: unreadable}, 1
	}
	return stateOf(info)
}

func stateOf(info fs.FileInfo) (s state, links uint64) {
	if !info.Mode().IsRegular() {
		return state{kind: irregular}, 1
	}
	s = state{kind: regular, size: info.Size(), mtime: info.ModTime().UnixNano()}
	return s, s.identify(info)
}

// trail lists the names that the way to an absolute path depends on: every
// symbolic link on it, the last directory, and at the end the last name that is
// there or is missing.
func trail(path string) []entry {
	var out []entry
	dir, rest := "/", strings.Split(filepath.Clean(path), "/")
	for links := 0; len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			dir = filepath.Dir(dir)
			continue
		}
		at := entry{dir, name}
		full := filepath.Join(dir, name)
		info, err := os.Lstat(full)
		if err != nil {
			return append(out, at)
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			if len(rest) <= 1 {
				out = append(out, at)
			}
			dir = full
			continue
		}
		out = append(out, at)
		target, err := os.Readlink(full)
		if links++; err != nil || links > maxLinksInPath {
			return out
		}
		if filepath.IsAbs(target) {
			dir = "/"
		}
		rest = append(strings.Split(filepath.Clean(target), "/"), rest...)
	}
	return out
}

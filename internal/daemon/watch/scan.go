package watch

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
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

// way is what the ways to some files depend on.
type way struct {
	names []entry  // every symbolic link, and the last name that is there or is missing
	dirs  []string // every other directory on it: when one moves, what is below moves with it
}

// scanner finds the states of the files, and watches where they are.
type scanner struct {
	paths    []string
	src      source
	log      *slog.Logger
	orphaned map[string]bool // already logged
	alone    bool            // it is logged that the kernel does not report every change
}

// placings is how often watches are placed because the way has changed meanwhile.
const placings = 4

// scan places the watches first, so that the kernel reports what changes after the
// scan.
func (l *scanner) scan() (seen []state, notified bool) {
	finals, err := l.place()
	l.told(err)
	for i, p := range l.paths {
		s, links := examine(p)
		s.writing = s.kind == regular && l.src.writing(p, finals[i], links)
		l.orphan(p, s.kind == regular && links == 0)
		seen = append(seen, s)
	}
	return seen, err == nil
}

// place watches everything that the paths depend on, and reports the last name on
// each way. A name that came while it looked is on no watch: it looks again until
// nothing has changed meanwhile.
func (l *scanner) place() (finals []entry, err error) {
	finals, on := l.look()
	for range placings {
		if err := l.src.place(l.paths, on); err != nil {
			return finals, err
		}
		was := on
		if finals, on = l.look(); slices.Equal(on.names, was.names) && slices.Equal(on.dirs, was.dirs) {
			return finals, nil
		}
	}
	return finals, errors.New("the directories on the way change all the time")
}

// look reports what the paths depend on, and the last name on the way to each.
func (l *scanner) look() (finals []entry, on way) {
	finals = make([]entry, len(l.paths))
	g := make(glances)
	for i, p := range l.paths {
		at := g.trail(p)
		on.names, on.dirs = append(on.names, at.names...), append(on.dirs, at.dirs...)
		if n := len(at.names); n > 0 {
			finals[i] = at.names[n-1]
		}
	}
	return finals, on
}

// told logs when the kernel's reports are not, or are again, all that is needed.
func (l *scanner) told(err error) {
	switch {
	case err != nil && !l.alone:
		l.log.Warn("file changes are found by polling, which takes a little processor time", "files", len(l.paths), "because", err)
	case err == nil && l.alone:
		l.log.Info("file changes are reported by the kernel again", "files", len(l.paths))
	}
	l.alone = err != nil
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

// glance is what lies at a path: a link's target, or "" for anything else.
type glance struct {
	target string
	err    error
}

// glances keeps what was seen of each path, since thousands of files share their
// directories. Make a new one for each look.
type glances map[string]glance

func (g glances) at(full string) glance {
	if seen, ok := g[full]; ok {
		return seen
	}
	var now glance
	info, err := os.Lstat(full)
	if now.err = err; err == nil && info.Mode()&fs.ModeSymlink != 0 {
		now.target, now.err = os.Readlink(full)
	}
	g[full] = now
	return now
}

// trail lists what the way to an absolute path depends on, in order.
func (g glances) trail(path string) (on way) {
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
		seen := g.at(full)
		switch {
		case seen.err != nil:
			on.names = append(on.names, at)
			return on
		case seen.target == "":
			if len(rest) <= 1 {
				on.names = append(on.names, at)
			} else {
				on.dirs = append(on.dirs, full)
			}
			dir = full
			continue
		}
		on.names = append(on.names, at)
		if links++; links > maxLinksInPath {
			return on
		}
		if filepath.IsAbs(seen.target) {
			dir = "/"
		}
		rest = append(strings.Split(filepath.Clean(seen.target), "/"), rest...)
	}
	return on
}

package overlay

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Apply makes the changes in the directory that they belong to. What the gate
// refuses, what is no file, link or directory, and what was changed there since the
// run began stays as it is. dry: nothing is changed, the Result says what would be.
// After an error a part of the changes is made.
func (s *Store) Apply(gate Gate, dry bool) (Result, error) {
	var res Result
	upper, lower, err := s.roots()
	if err != nil {
		return res, err
	}
	defer upper.Close()
	defer lower.Close()
	var all []entry
	if err := walk(upper, lower, func(e entry) error { all = append(all, e); return nil }); err != nil {
		return res, err
	}
	a := &applier{Store: s, upper: upper, lower: lower, gate: gate, refused: map[string]bool{}}
	for _, e := range all {
		why := a.refuses(e)
		if why == "" && !dry {
			if err := a.make(e); err != nil {
				why = err.Error()
			}
		}
		if why != "" {
			a.refused[e.Path] = true
			res.Refused = append(res.Refused, Refusal{e.Change, why})
			continue
		}
		res.Applied = append(res.Applied, e.Change)
	}
	return res, nil
}

// applier is one Apply.
type applier struct {
	*Store
	upper, lower *os.Root
	gate         Gate
	refused      map[string]bool // paths; nothing is made below them
}

// refuses says why a change is not to be made; "": it is.
func (a *applier) refuses(e entry) string {
	for dir := path.Dir(e.Path); dir != "/"; dir = path.Dir(dir) {
		if a.refused[dir] {
			return "its directory was refused"
		}
	}
	if why := a.gate(filepath.Join(a.Workspace, e.Path)); why != "" {
		return why
	}
	switch {
	case e.upper == nil || isDir(e.upper) || isFile(e.upper):
	case isLink(e.upper):
		if target, err := a.upper.Readlink(e.Path[1:]); err != nil || !staysInside(e.Path, target) {
			return "a link that leads out of the directory"
		}
	default:
		return "neither a file nor a link nor a directory"
	}
	if isDir(e.upper) && isDir(e.lower) {
		return "" // a mode alone
	}
	return a.changedSince(e.Path[1:], e.lower, 0)
}

// staysInside reports whether a link at name, with a slash in front, leads to a name
// below the same directory. One that goes up again after it went down, through what
// may be a link itself, does not.
func staysInside(name, target string) bool {
	down := false
	for part := range strings.SplitSeq(target, "/") {
		if part == ".." && down {
			return false
		}
		down = down || part != ".." && part != "." && part != ""
	}
	return !path.IsAbs(target) && filepath.IsLocal(path.Join(path.Dir(name)[1:], target))
}

// changedSince looks through what is to be replaced or removed for what the gate
// keeps, and for what somebody changed here after the run began.
func (a *applier) changedSince(name string, fi fs.FileInfo, depth int) string {
	if fi == nil {
		return ""
	}
	if !fi.IsDir() {
		if ctime(fi).After(a.Started) {
			return "it was changed here since: the file here stays"
		}
		return ""
	}
	if depth > maxDepth {
		return "too many directories below each other"
	}
	names, err := list(a.lower, name)
	if err != nil {
		return err.Error()
	}
	for _, n := range names {
		child := path.Join(name, n)
		if why := a.gate(filepath.Join(a.Workspace, child)); why != "" {
			return "/" + child + ": " + why
		}
		fi, err := a.lower.Lstat(child)
		if err != nil {
			return err.Error()
		}
		if why := a.changedSince(child, fi, depth+1); why != "" {
			return "/" + child + ": " + why
		}
	}
	return ""
}

func ctime(fi fs.FileInfo) time.Time {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return fi.ModTime()
	}
	return time.Unix(st.Ctim.Unix())
}

// make makes one change.
func (a *applier) make(e entry) error {
	name := e.Path[1:]
	if err := a.realParents(name); err != nil {
		return err
	}
	if now, err := a.lower.Lstat(name); e.lower != nil && (err != nil || !os.SameFile(now, e.lower)) {
		return errors.New("it was changed here since: the file here stays")
	}
	if e.upper == nil {
		return a.lower.RemoveAll(name)
	}
	if isDir(e.lower) != isDir(e.upper) && e.lower != nil {
		if err := a.lower.RemoveAll(name); err != nil {
			return err
		}
	}
	mode := e.upper.Mode().Perm()
	if isDir(e.upper) {
		if err := a.lower.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		return a.lower.Chmod(name, mode|0o700) // what is below it comes later
	}
	temp := path.Join(path.Dir(name), ".launch-apply-"+strings.ToLower(rand.Text()[:12]))
	err := a.put(name, temp, e.upper, mode)
	if err == nil {
		err = a.lower.Rename(temp, name)
	}
	if err != nil {
		_ = a.lower.Remove(temp)
	}
	return err
}

// put makes the file or link temp of what is at name on the upper side.
func (a *applier) put(name, temp string, fi fs.FileInfo, mode fs.FileMode) error {
	if isLink(fi) {
		target, err := a.upper.Readlink(name)
		if err != nil {
			return err
		}
		return a.lower.Symlink(target, temp)
	}
	from, err := openFile(a.upper, name)
	if errors.Is(err, fs.ErrPermission) { // the program took the right to read it
		if err = a.upper.Chmod(name, mode|0o400); err == nil {
			from, err = openFile(a.upper, name)
		}
	}
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := a.lower.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	return errors.Join(err, to.Chmod(mode), to.Close())
}

// realParents refuses a name with a link in the place of a directory above it.
func (a *applier) realParents(name string) error {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if fi, err := a.lower.Lstat(dir); err != nil || !fi.IsDir() {
			return fmt.Errorf("/%s is no directory here", dir)
		}
	}
	return nil
}

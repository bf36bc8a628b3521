package stage

import (
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// action is what is to be done at one path.
type action int

const (
	create action = iota + 1
	replace
	chmod
)

// plan compares what came back with what was sent and with what is here now.
func (m *mirror) plan() {
	m.write, m.above, m.seen = map[string]action{}, map[string]string{}, map[string]fs.FileInfo{}
	for name, r := range m.remote {
		m.planWrite(name, r)
	}
	for name, e := range m.tree.entries {
		if e.shared || e.Mode.IsDir() {
			continue
		}
		if r := m.remote[name]; r != nil && !r.Mode.IsDir() {
			continue
		}
		m.planRemove(name, e)
	}
	slices.Sort(m.remove)
}

// planWrite decides about a path that came back.
func (m *mirror) planWrite(name string, r *remote) {
	was := m.tree.entries[name]
	if r.Mode.IsDir() {
		return // made with what is in it, or at the end
	}
	if was != nil && !was.shared && was.same(&r.Entry) {
		return
	}
	if at := m.obstacle(name); at != "" {
		m.planBehind(name, at)
		return
	}
	info, err := m.tree.root.Lstat(name)
	if why := m.tree.mayNot(name); why != "" {
		if err != nil || !m.holds(name, info, &r.Entry) {
			m.conflict(name, why)
		}
		return
	}
	if err == nil && !info.IsDir() {
		m.seen[name] = info
	}
	switch {
	case errors.Is(err, fs.ErrNotExist) && (was == nil || was.shared || was.Mode.IsDir()):
		m.write[name] = create
	case errors.Is(err, fs.ErrNotExist):
		m.conflict(name, "changed there, deleted here")
	case err != nil:
		m.conflict(name, reason(err))
	case m.holds(name, info, &r.Entry):
		// here already
	case info.IsDir():
		m.planReplaceDir(name)
	case (was == nil || was.shared) && m.cameFromThere(name, info):
		m.write[name] = replace
	case was == nil:
		m.conflict(name, "made there and here")
	case was.shared:
		m.conflict(name, "made there, and here is one that was not sent")
	case !m.untouched(name, info, was):
		m.conflict(name, "changed there and here")
	case was.Mode.IsRegular() && r.Mode.IsRegular() && was.sum == r.sum:
		m.write[name] = chmod
	default:
		m.write[name] = replace
	}
}

// planReplaceDir decides about a file that came back where a directory is. It
// may give way when everything in it was sent: what was deleted there is
// deleted first, and rmdir says whether something is left.
func (m *mirror) planReplaceDir(name string) {
	for sent := range m.tree.entries {
		if sent == name || strings.HasPrefix(sent, name+"/") {
			m.write[name] = replace
			return
		}
	}
	m.conflict(name, "a file there, a directory here")
}

// obstacle reports the first thing above name that exists here and is not a
// directory: a link or a file; "" when nothing is in the way.
func (m *mirror) obstacle(name string) string {
	dir := path.Dir(name)
	if dir == "." {
		return ""
	}
	if known, ok := m.above[dir]; ok {
		return known
	}
	at := m.obstacle(dir)
	if at == "" {
		if info, err := m.tree.root.Lstat(dir); err == nil && !info.IsDir() {
			at = dir
		}
	}
	m.above[dir] = at
	return at
}

// planBehind decides about a path that came back below something that is not a
// directory here: it may give way when it was sent and is gone there.
func (m *mirror) planBehind(name, at string) {
	if e := m.tree.entries[at]; e != nil && !e.shared && m.tree.mayNot(name) == "" {
		m.write[name] = create // and when it stays after all, that is a conflict then
		return
	}
	m.conflict(name, at+" is no directory here")
}

// planRemove decides about a path that was sent and did not come back.
func (m *mirror) planRemove(name string, was *Entry) {
	info, err := m.tree.root.Lstat(name)
	switch {
	case err != nil || m.obstacle(name) != "": // gone here, too
	case was.Mode.IsRegular() && !was.sent:
		m.conflict(name, "missing there; it was not sent whole")
	case !m.untouched(name, info, was):
		m.conflict(name, "deleted there, changed here")
	case m.tree.mayNot(name) != "":
		m.conflict(name, "deleted there: "+m.tree.mayNot(name))
	default:
		m.seen[name] = info
		m.remove = append(m.remove, name)
	}
}

// othersWrite are the permissions that a umask over there may have taken off.
const othersWrite fs.FileMode = 0o022

// same reports whether what came back is what was sent.
func (e *Entry) same(r *Entry) bool {
	switch {
	case e.Mode.Type() != r.Mode.Type():
		return false
	case e.Mode.Type() == fs.ModeSymlink:
		return e.Link == r.Link
	case !e.Mode.IsRegular():
		return true
	}
	return e.sent && e.sum == r.sum && (r.Mode == e.Mode || r.Mode == e.Mode&^othersWrite)
}

// untouched reports whether the path here is still what was sent.
func (m *mirror) untouched(name string, info fs.FileInfo, was *Entry) bool {
	if was.Mode.IsRegular() && !was.sent {
		return false
	}
	return m.holds(name, info, was)
}

// cameFromThere reports whether the file here is what an earlier run left.
func (m *mirror) cameFromThere(name string, info fs.FileInfo) bool {
	sum, known := m.tree.config.Known[name]
	return known && m.holds(name, info, &Entry{Mode: info.Mode().Perm(), Size: info.Size(), sum: sum})
}

// holds reports whether the path here is what e says.
func (m *mirror) holds(name string, info fs.FileInfo, e *Entry) bool {
	switch {
	case info.Mode().Type() != e.Mode.Type():
		return false
	case e.Mode.Type() == fs.ModeSymlink:
		link, err := m.tree.root.Readlink(name)
		return err == nil && link == e.Link
	case !e.Mode.IsRegular():
		return true
	case info.Size() != e.Size || info.Mode().Perm() != e.Mode.Perm():
		return false
	}
	f, err := openRegular(m.tree.root, name)
	if err != nil {
		return false
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, io.LimitReader(f, e.Size+1)); err != nil {
		return false
	}
	return [sha256.Size]byte(sum.Sum(nil)) == e.sum
}

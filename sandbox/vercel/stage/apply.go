package stage

import (
	"archive/tar"
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
)

// apply makes the changes: first what gives way, then what is new.
func (m *mirror) apply(archive io.ReadSeeker) error {
	for _, name := range m.remove {
		if err := m.removeFile(name); err != nil {
			m.conflict(name, reason(err))
			continue
		}
		m.report.Deleted = append(m.report.Deleted, name)
	}
	m.removeDirs()
	wanted := map[int][]string{} // by entry of the archive; hard links share one
	for name := range m.write {
		at := m.remote[name].at
		wanted[at] = append(wanted[at], name)
	}
	for _, name := range wanted[notFetched] { // for its mode alone, see lacks
		m.done(name, chmod, m.chmod(name, m.remote[name].Mode.Perm()))
	}
	for _, p := range m.report.Conflicts {
		if r := m.remote[p.Path]; r != nil && m.aside != "" && r.Mode.IsRegular() {
			wanted[r.at] = append(wanted[r.at], p.Path)
		}
	}
	m.bytes, m.handled = 0, 0
	err := m.read(archive, func(at int, _ *tar.Header, r io.Reader) error {
		return m.applyEntry(wanted[at], r)
	})
	if err != nil {
		return err
	}
	return m.makeDirs()
}

// removeDirs removes directories that did not come back and hold nothing here,
// the deepest first.
func (m *mirror) removeDirs() {
	dirs := map[string]bool{}
	for _, name := range m.report.Deleted {
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			dirs[dir] = true
		}
	}
	for name, e := range m.tree.entries {
		for dir := name; e.Mode.IsDir() && !e.shared && dir != "."; dir = path.Dir(dir) {
			dirs[dir] = true
		}
	}
	list := make([]string, 0, len(dirs))
	for dir := range dirs {
		if r := m.remote[dir]; (r == nil || !r.Mode.IsDir()) && !m.within[dir] && m.write[dir] == 0 && m.tree.mayNot(dir) == "" {
			list = append(list, dir)
		}
	}
	slices.SortFunc(list, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	for _, dir := range list {
		// A directory with something in it stays, and so does a link to one.
		if info, err := m.tree.root.Lstat(dir); err == nil && info.IsDir() && m.tree.root.Remove(dir) == nil {
			m.report.Deleted = append(m.report.Deleted, dir)
		}
	}
}

// applyEntry makes the names that one entry of the archive is for.
func (m *mirror) applyEntry(names []string, r io.Reader) error {
	slices.SortFunc(names, func(a, b string) int { return cmp.Compare(m.write[b], m.write[a]) }) // those in conflict last
	source, read := "", false
	for _, name := range names {
		e := &m.remote[name].Entry
		do := m.write[name]
		var err error
		switch {
		case do == 0 && !read:
			err, read = m.keepAside(name, r), true
		case do == 0:
		case do == chmod:
			err = m.chmod(name, e.Mode.Perm())
		case e.Mode.Type() == fs.ModeSymlink:
			err = m.put(name, func(temp string) error { return m.tree.root.Symlink(e.Link, temp) })
		case source != "":
			err = m.put(name, func(temp string) error { return m.copyOf(source, temp, e) })
		case !read:
			err, read = m.put(name, func(temp string) error { return m.save(temp, e, r) }), true
			if err == nil {
				source = name
			}
		default:
			err = errors.New("a hard link to a file that was not written")
		}
		if err != nil && (errors.Is(err, errArchive) || fatal(err)) {
			return err
		}
		m.done(name, do, err)
	}
	return nil
}

// done records the result for one name.
func (m *mirror) done(name string, do action, err error) {
	switch {
	case do == 0 && err != nil:
		m.conflict(name, "and could not be kept aside: "+reason(err))
	case do == 0:
	case err != nil:
		m.conflict(name, reason(err))
	case do == create:
		m.sum(name)
		m.report.Added = append(m.report.Added, name)
	default:
		m.sum(name)
		m.report.Changed = append(m.report.Changed, name)
	}
	m.count(0)
}

// sum notes what was written.
func (m *mirror) sum(name string) {
	r := m.remote[name]
	if !r.Mode.IsRegular() {
		return
	}
	if m.report.Sums == nil {
		m.report.Sums = map[string][sha256.Size]byte{}
	}
	m.report.Sums[name] = r.sum
}

// put makes something beside name and lets it take the name.
func (m *mirror) put(name string, build func(temp string) error) error {
	dir := path.Dir(name)
	if err := m.directory(dir); err != nil {
		return err
	}
	if info, err := m.tree.root.Lstat(name); err == nil && info.IsDir() {
		if err := m.tree.root.Remove(name); err != nil {
			return fmt.Errorf("a file there, a directory with files of its own here: %w", err)
		}
		delete(m.seen, name)
	}
	temp := temporary(name)
	if err := build(temp); err != nil {
		_ = m.tree.root.Remove(temp)
		return err
	}
	err := m.place(temp, name, m.write[name])
	var stray *strayError
	switch {
	case err == nil || errors.As(err, &stray):
		return err
	case errors.Is(err, errTouched) || errors.Is(err, errMade):
		err = errors.Join(err, m.moveAside(name, temp))
	}
	_ = m.tree.root.Remove(temp)
	return err
}

// moveAside keeps what came back for a path that changed here meanwhile.
func (m *mirror) moveAside(name, temp string) error {
	if m.aside == "" || !m.remote[name].Mode.IsRegular() {
		return nil
	}
	f, err := openRegular(m.tree.root, temp)
	if err != nil {
		return err
	}
	defer f.Close()
	return m.keepAside(name, f)
}

// chmod gives a file that is still what was planned for the mode.
func (m *mirror) chmod(name string, mode fs.FileMode) error {
	m.at(beforeCheck, name)
	if info, err := m.tree.root.Lstat(name); err != nil || !unchanged(m.seen[name], info, false) {
		return errTouched
	}
	return m.tree.root.Chmod(name, mode)
}

// errThroughLink is the error for a path that leads through a link.
var errThroughLink = errors.New("a link or file is in the way")

// directory makes dir and what is above it, out of real directories only.
func (m *mirror) directory(dir string) error {
	if dir == "." {
		return nil
	}
	if err := m.directory(path.Dir(dir)); err != nil {
		return err
	}
	info, err := m.tree.root.Lstat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return m.tree.root.Mkdir(dir, m.dirMode(dir))
	case err != nil:
		return err
	case !info.IsDir():
		return errThroughLink
	}
	return nil
}

// dirMode is the mode of a new directory: its own there, but always of use to
// its owner.
func (m *mirror) dirMode(dir string) fs.FileMode {
	if r := m.remote[dir]; r != nil && r.Mode.IsDir() {
		return r.Mode.Perm() | 0o700
	}
	return 0o755
}

// makeDirs makes the directories that came back empty.
func (m *mirror) makeDirs() error {
	for name, r := range m.remote {
		if was := m.tree.entries[name]; !r.Mode.IsDir() || m.within[name] || was != nil && was.Mode.IsDir() {
			continue
		}
		if info, err := m.tree.root.Lstat(name); err == nil && info.IsDir() {
			continue
		}
		if why := m.tree.mayNot(name); why != "" {
			m.conflict(name, why)
			continue
		}
		if err := m.directory(name); err != nil {
			if fatal(err) {
				return err
			}
			m.conflict(name, reason(err))
			continue
		}
		m.report.Added = append(m.report.Added, name)
	}
	return nil
}

// errArchive marks errors of reading the archive: the second reading must not
// differ from the first.
var errArchive = errors.New("what came back could not be read again")

// save writes what r holds to the new file temp.
func (m *mirror) save(temp string, e *Entry, r io.Reader) error {
	f, err := m.tree.root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	n, err := io.Copy(f, io.LimitReader(r, e.Size))
	m.bytes += n
	if err == nil && n != e.Size {
		err = fmt.Errorf("%w: %s is short", errArchive, e.Path)
	}
	if err == nil {
		err = f.Chmod(e.Mode.Perm())
	}
	return errors.Join(err, f.Close())
}

// copyOf makes temp from source, which has been made of the same entry.
func (m *mirror) copyOf(source, temp string, e *Entry) error {
	f, err := openRegular(m.tree.root, source)
	if err != nil {
		return err
	}
	defer f.Close()
	return m.save(temp, e, f)
}

// keepAside writes what came back for a path in conflict to a directory outside
// the workspace.
func (m *mirror) keepAside(name string, r io.Reader) error {
	if err := os.MkdirAll(m.aside, 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(m.aside)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := root.MkdirAll(path.Dir(name), 0o700); err != nil {
		return err
	}
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	return errors.Join(err, f.Close())
}

// reason is the text of err for the user, without the temporary name.
func reason(err error) string {
	var pe *fs.PathError
	var le *os.LinkError
	switch {
	case errors.As(err, &pe):
		return pe.Err.Error()
	case errors.As(err, &le):
		return le.Err.Error()
	}
	return err.Error()
}

package stage

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
)

// Errors of a path that somebody here changed between the plan and its execution.
var (
	errTouched = errors.New("changed there and here, while changes came back")
	errMade    = errors.New("made there and here, while changes came back")
	errKept    = errors.New("deleted there, changed here while changes came back")
)

// steps of changing a path, for tests that interfere.
type step int

const (
	beforeCheck step = iota + 1
	beforeSwap
)

func (m *mirror) at(s step, name string) {
	if m.tree.hook != nil {
		m.tree.hook(s, name)
	}
}

// temporary is a new name beside name.
func temporary(name string) string { return path.Join(path.Dir(name), ".launch-"+rand.Text()[:12]) }

// unchanged reports whether the path is still what was planned for. moved: it was
// renamed since, which changes its status time.
func unchanged(planned, now fs.FileInfo, moved bool) bool {
	return planned != nil && os.SameFile(planned, now) && planned.Mode() == now.Mode() && planned.Size() == now.Size() &&
		planned.ModTime().Equal(now.ModTime()) && (moved || statusTime(planned) == statusTime(now))
}

// place gives temp, which holds what came back, the name.
//
// Threat: a person saves the file between the plan and here, and the rename loses
// it -> the name is taken only if nothing has it, or else the two are exchanged in
// one step, and what came out is compared with what was planned for; if it is
// anything else, they are exchanged again. Left over: a program that holds the old
// file open and writes into it after the comparison; and file systems without an
// exchange (some network ones, and those of other kernels), where the comparison
// comes right before the rename.
func (m *mirror) place(temp, name string, do action) error {
	m.at(beforeCheck, name)
	info, err := m.tree.root.Lstat(name)
	planned := m.seen[name]
	if do == create || planned == nil {
		if err == nil {
			return errMade
		}
		return m.take(temp, name, errMade)
	}
	if err != nil || !unchanged(planned, info, false) {
		return errTouched
	}
	ours, err := m.tree.root.Lstat(temp)
	if err != nil {
		return err
	}
	m.at(beforeSwap, name)
	err = exchange(m.tree.root, temp, name)
	if errors.Is(err, errNoSwap) {
		if now, err := m.tree.root.Lstat(name); err != nil || !unchanged(planned, now, false) {
			return errTouched
		}
		return m.tree.root.Rename(temp, name)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return errTouched
	}
	if err != nil {
		return err
	}
	out, err := m.tree.root.Lstat(temp)
	if err == nil && unchanged(planned, out, true) {
		return m.tree.root.Remove(temp)
	}
	err = exchange(m.tree.root, temp, name)
	if back, e := m.tree.root.Lstat(temp); err != nil || e != nil || !os.SameFile(ours, back) {
		return &strayError{temp, errors.Join(err, e)} // saved once more: not ours to remove
	}
	return errTouched
}

// take gives temp the name, if nothing has it.
func (m *mirror) take(temp, name string, taken error) error {
	m.at(beforeSwap, name)
	err := renameNew(m.tree.root, temp, name)
	switch {
	case errors.Is(err, errNoSwap):
		if _, err := m.tree.root.Lstat(name); err == nil {
			return taken
		}
		return m.tree.root.Rename(temp, name)
	case errors.Is(err, fs.ErrExist):
		return taken
	}
	return err
}

// removeFile removes a file or link that is still what was planned for: it is taken
// away first, compared, and put back if it is not.
func (m *mirror) removeFile(name string) error {
	m.at(beforeCheck, name)
	info, err := m.tree.root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	planned := m.seen[name]
	if err != nil || !unchanged(planned, info, false) {
		return errors.Join(err, errKept)
	}
	m.at(beforeSwap, name)
	temp := temporary(name)
	err = renameNew(m.tree.root, name, temp)
	if errors.Is(err, errNoSwap) {
		if info, err = m.tree.root.Lstat(name); err != nil || !unchanged(planned, info, false) {
			return errors.Join(err, errKept)
		}
		return m.tree.root.Remove(name)
	}
	if err != nil {
		return err
	}
	if info, err = m.tree.root.Lstat(temp); err == nil && unchanged(planned, info, true) {
		return m.tree.root.Remove(temp)
	}
	if err := renameNew(m.tree.root, temp, name); err != nil {
		return &strayError{temp, err}
	}
	return errKept
}

// strayError says where a file of the person's is that could not get its name
// back.
type strayError struct {
	name string
	err  error
}

func (e *strayError) Error() string {
	return fmt.Sprintf("it was changed here meanwhile, more than once: what you saved first is in %s", e.name)
}

func (e *strayError) Unwrap() error { return e.err }

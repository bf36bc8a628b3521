package overlay

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// entry is one change with what is known of both sides. A side that is not there
// is nil.
type entry struct {
	Change
	upper, lower fs.FileInfo
}

// isDir and friends say what an entry is on a side that may be missing.
func isDir(fi fs.FileInfo) bool  { return fi != nil && fi.IsDir() }
func isFile(fi fs.FileInfo) bool { return fi != nil && fi.Mode().IsRegular() }
func isLink(fi fs.FileInfo) bool { return fi != nil && fi.Mode()&os.ModeSymlink != 0 }

// isWhiteout reports whether fi marks a removed file.
func isWhiteout(fi fs.FileInfo) bool {
	st, ok := fi.Sys().(*syscall.Stat_t)
	return ok && fi.Mode()&os.ModeCharDevice != 0 && st.Rdev == 0
}

// walker compares an upper directory with a lower one.
type walker struct {
	upper, lower *os.Root
	seen         int
	each         func(entry) error
}

// Changes lists at most so many changes, in the order of their names; total counts
// all of them.
func (s *Store) Changes(most int) (list []Change, total int, err error) {
	upper, lower, err := s.roots()
	if err != nil {
		return nil, 0, err
	}
	defer upper.Close()
	defer lower.Close()
	err = walk(upper, lower, func(e entry) error {
		if total++; len(list) < most {
			list = append(list, e.Change)
		}
		return nil
	})
	return list, total, err
}

// roots opens the directory of changes and the one that they belong to. The caller
// closes both.
func (s *Store) roots() (upper, lower *os.Root, err error) {
	if upper, err = os.OpenRoot(filepath.Join(s.Dir, upperName)); err != nil {
		return nil, nil, err
	}
	if lower, err = os.OpenRoot(s.Workspace); err != nil {
		upper.Close()
		return nil, nil, err
	}
	return upper, lower, nil
}

// walk calls each for every change.
func walk(upper, lower *os.Root, each func(entry) error) error {
	w := &walker{upper: upper, lower: lower, each: each}
	return w.dir(".", 0, true)
}

// dir compares the directory name. both: the lower one has it as well.
func (w *walker) dir(name string, depth int, both bool) error {
	if depth > maxDepth {
		return fmt.Errorf("%s: more than %d directories below each other", name, maxDepth)
	}
	restore, err := open(w.upper, name)
	if err != nil {
		return err
	}
	defer restore()
	opaque, err := isOpaque(w.upper, name)
	if err != nil {
		return err
	}
	names, err := list(w.upper, name)
	if err != nil {
		return err
	}
	here := make(map[string]bool, len(names))
	for _, n := range names {
		here[n] = true
		if err := w.one(path.Join(name, n), depth, both); err != nil {
			return err
		}
	}
	if !opaque || !both {
		return nil
	}
	names, err = list(w.lower, name)
	if err != nil {
		return err
	}
	for _, n := range names {
		if !here[n] {
			child := path.Join(name, n)
			lower, err := w.lower.Lstat(child)
			if err != nil {
				return err
			}
			if err := w.tell('D', child, nil, lower); err != nil {
				return err
			}
		}
	}
	return nil
}

// one compares one entry of an upper directory.
func (w *walker) one(name string, depth int, both bool) error {
	upper, err := w.upper.Lstat(name)
	if err != nil {
		return err
	}
	var lower fs.FileInfo
	if both {
		if lower, err = w.lower.Lstat(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	switch {
	case isWhiteout(upper):
		if lower == nil {
			return w.count()
		}
		return w.tell('D', name, nil, lower)
	case lower == nil:
		if err := w.tell('A', name, upper, nil); err != nil {
			return err
		}
	case w.differ(name, upper, lower):
		if err := w.tell('M', name, upper, lower); err != nil {
			return err
		}
	default:
		if err := w.count(); err != nil {
			return err
		}
	}
	if upper.IsDir() {
		return w.dir(name, depth+1, isDir(lower))
	}
	return nil
}

func (w *walker) count() error {
	if w.seen++; w.seen > maxEntries {
		return fmt.Errorf("the changes are more than %d files", maxEntries)
	}
	return nil
}

func (w *walker) tell(kind byte, name string, upper, lower fs.FileInfo) error {
	if err := w.count(); err != nil {
		return err
	}
	return w.each(entry{Change{kind, "/" + name}, upper, lower})
}

// differ reports whether the two sides are not the same. What cannot be compared
// differs.
func (w *walker) differ(name string, upper, lower fs.FileInfo) bool {
	if upper.Mode() != lower.Mode() {
		return true
	}
	switch {
	case isFile(upper):
		return upper.Size() != lower.Size() || !w.sameContent(name)
	case isLink(upper):
		a, errA := w.upper.Readlink(name)
		b, errB := w.lower.Readlink(name)
		return errA != nil || errB != nil || a != b
	}
	return !upper.IsDir()
}

func (w *walker) sameContent(name string) bool {
	a, err := openFile(w.upper, name)
	if err != nil {
		return false
	}
	defer a.Close()
	b, err := openFile(w.lower, name)
	if err != nil {
		return false
	}
	defer b.Close()
	x, y := make([]byte, 64<<10), make([]byte, 64<<10)
	for {
		n, errA := io.ReadFull(a, x)
		m, errB := io.ReadFull(b, y)
		if !bytes.Equal(x[:n], y[:m]) {
			return false
		}
		if errA != nil || errB != nil {
			return ended(errA) && ended(errB)
		}
	}
}

func ended(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }

// openFile opens a regular file for reading. It follows no link, and waits for
// nobody.
func openFile(root *os.Root, name string) (*os.File, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if fi, err := f.Stat(); err != nil || !fi.Mode().IsRegular() {
		f.Close()
		return nil, fmt.Errorf("%s: not a file", name)
	}
	return f, nil
}

// open makes sure that a directory of the upper side can be read, whatever mode the
// program gave it. restore gives the mode back.
func open(root *os.Root, name string) (restore func(), err error) {
	fi, err := root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if fi.Mode().Perm()&0o700 == 0o700 {
		return func() {}, nil
	}
	mode := fi.Mode().Perm()
	if err := root.Chmod(name, mode|0o700); err != nil {
		return nil, err
	}
	return func() { _ = root.Chmod(name, mode) }, nil
}

// isOpaque reports whether a directory of the upper side replaces the lower one.
func isOpaque(root *os.Root, name string) (bool, error) {
	f, err := root.Open(name)
	if err != nil {
		return false, err
	}
	defer f.Close()
	var value [8]byte
	n, err := unix.Fgetxattr(int(f.Fd()), "user.overlay.opaque", value[:])
	if err == unix.ENODATA || err == unix.EOPNOTSUPP {
		return false, nil
	}
	return err == nil && string(value[:n]) == "y", err
}

// list reads a directory, sorted.
func list(root *os.Root, name string) ([]string, error) {
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	all, err := f.Readdirnames(maxEntries)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	slices.Sort(all)
	return all, nil
}

package overlay

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Names in a Store's directory. The first two are of sandbox/process's choosing.
const (
	upperName = "changes"
	workName  = "work"
	aboutName = "about.json"
)

// Store is the directory that holds an overlay's changes. Its methods are not for
// concurrent use, nor for use during a run.
type Store struct {
	Dir string // absolute
	about
}

// Make makes a Store in dir, which must be empty or not there, for a run in
// workspace. uid and gid are of the user whose run it is; -1: this process's.
func Make(dir, workspace string, uid, gid int) (*Store, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return nil, err
	}
	if names, err := os.ReadDir(dir); err != nil {
		return nil, err
	} else if len(names) > 0 {
		return nil, fmt.Errorf("%s is not empty", dir)
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return nil, err
	}
	fi, err := os.Stat(workspace)
	if err != nil {
		return nil, err
	}
	s := &Store{Dir: dir, about: about{Version: 1, Workspace: workspace}}
	for name, mode := range map[string]os.FileMode{"": 0o700, upperName: fi.Mode().Perm() | 0o700, workName: 0o700} {
		path := filepath.Join(dir, name)
		if name != "" {
			if err := os.Mkdir(path, 0o700); err != nil {
				return nil, err
			}
		}
		if err := errors.Join(os.Chmod(path, mode), os.Lchown(path, uid, gid)); err != nil {
			return nil, err
		}
	}
	if fi, err = os.Stat(filepath.Join(dir, upperName)); err != nil {
		return nil, err
	}
	s.Started = ctime(fi) // by the clock of files
	data, err := json.Marshal(s.about)
	if err != nil {
		return nil, err
	}
	return s, os.WriteFile(filepath.Join(dir, aboutName), append(data, '\n'), 0o600)
}

// maxAbout bounds about.json.
const maxAbout = 64 << 10

// Open opens the Store that a run left in dir.
func Open(dir string) (*Store, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	s := &Store{Dir: dir}
	f, err := os.Open(filepath.Join(dir, aboutName))
	if err != nil {
		return nil, fmt.Errorf("%s holds no changes of a run: %w", dir, err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxAbout))
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, &s.about); err != nil || s.Version != 1 || !filepath.IsAbs(s.Workspace) {
		return nil, fmt.Errorf("%s holds no changes of a run: %s is damaged, or of a newer launch", dir, aboutName)
	}
	return s, nil
}

// Keep leaves the changes for Open.
func (s *Store) Keep() error { return removeAll(filepath.Join(s.Dir, workName)) }

// Remove removes the Store.
func (s *Store) Remove() error { return removeAll(s.Dir) }

// removeAll removes dir, also directories in it that nobody may enter.
func removeAll(dir string) error {
	if err := os.RemoveAll(dir); err == nil {
		return nil
	}
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(path, 0o700) // the error comes below
		}
		return nil
	})
	// A directory that could not be entered was not walked: one level more each time.
	for range maxDepth {
		if err := os.RemoveAll(dir); err == nil {
			return nil
		}
		more := false
		_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil && d != nil && d.IsDir() {
				more = os.Chmod(path, 0o700) == nil || more
			}
			return nil
		})
		if !more {
			break
		}
	}
	return os.RemoveAll(dir)
}

// Workdir reports the directory that the changes belong to.
func (s *Store) Workdir() string { return s.Workspace }

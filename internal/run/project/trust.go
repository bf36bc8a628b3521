package project

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Store is the record of project files that the person trusts: one file for each path,
// with the digest that is trusted. It is among launch's records, which no program
// inside can see. Safe for concurrent use by processes: entries are replaced whole.
type Store struct {
	Dir string // absolute; "": nothing is trusted
}

// entry is the file in which the trust in path is kept.
func (s Store) entry(path string) string {
	sum := sha256.Sum256([]byte(path))
	return filepath.Join(s.Dir, hex.EncodeToString(sum[:]))
}

// judge says how far f counts.
func (s Store) judge(f *File) error {
	if s.Dir == "" {
		return nil
	}
	text, err := os.ReadFile(s.entry(f.Path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("which project files are trusted: %w", err)
	}
	if string(text) == line(f.Digest, f.Path) {
		f.State, f.Counts = Trusted, f.Whole
		return nil
	}
	f.State = Changed
	return nil
}

func line(digest, path string) string { return digest + " " + path + "\n" }

// Add trusts f as it was read.
func (s Store) Add(f *File) error {
	if s.Dir == "" {
		return errors.New("there is no place to keep trust in: set HOME, or XDG_STATE_HOME")
	}
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return err
	}
	made, err := os.CreateTemp(s.Dir, ".new-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(made.Name()) //nolint:errcheck // it has another name by then
	_, err = made.WriteString(line(f.Digest, f.Path))
	if err := errors.Join(err, made.Sync(), made.Close()); err != nil {
		return err
	}
	return os.Rename(made.Name(), s.entry(f.Path))
}

// Remove takes trust in path away. The error is fs.ErrNotExist if there was none.
func (s Store) Remove(path string) error { return os.Remove(s.entry(path)) }

// List reports the paths that are trusted, in order.
func (s Store) List() (paths []string, err error) {
	all, err := os.ReadDir(s.Dir)
	if errors.Is(err, fs.ErrNotExist) || s.Dir == "" {
		return nil, nil
	}
	for _, e := range all {
		text, readErr := os.ReadFile(filepath.Join(s.Dir, e.Name()))
		_, path, ok := strings.Cut(strings.TrimSuffix(string(text), "\n"), " ")
		if readErr == nil && ok && s.entry(path) == filepath.Join(s.Dir, e.Name()) {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return paths, err
}

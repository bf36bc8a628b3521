// Package guide puts a text for agents into a file that they read, between two
// marks.
//
//	changed, err := guide.Into("CLAUDE.md", text)
package guide

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// The marks are comments of Markdown.
const (
	begin = "<!-- egressd guide: begin -->\n"
	end   = "<!-- egressd guide: end -->\n"
)

// maxFile bounds the file, in bytes.
const maxFile = 4 << 20

// Into puts text into the file of this name, in place of the one from before, else at
// the end; a file that does not exist is made. Everything else in the file stays as it
// is. It reports whether the file has changed.
func Into(name, text string) (changed bool, err error) {
	old, perm := "", fs.FileMode(0o644)
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return false, err
	case !info.Mode().IsRegular() || info.Size() > maxFile:
		return false, fmt.Errorf("%s is not a text file of at most %d MB", name, maxFile>>20)
	default:
		data, err := os.ReadFile(name)
		if err != nil {
			return false, err
		}
		old, perm = string(data), info.Mode().Perm()
	}
	now, err := with(old, text)
	if err != nil {
		return false, fmt.Errorf("%s: %w", name, err)
	}
	if now == old {
		return false, nil
	}
	return true, replace(name, now, perm)
}

// with is old with text between the marks.
func with(old, text string) (string, error) {
	block := begin + text + end
	before, rest, found := strings.Cut(old, begin)
	if !found {
		if old != "" {
			if !strings.HasSuffix(old, "\n") {
				old += "\n"
			}
			old += "\n"
		}
		return old + block, nil
	}
	_, after, found := strings.Cut(rest, end)
	if !found {
		return "", errors.New("the mark that ends the guide is missing: delete the guide, or put back the line " + strings.TrimSpace(end))
	}
	return before + block + after, nil
}

// replace writes a new file in place of the one of this name, behind a link if it is
// one: what was there stays whole if it fails.
func replace(name, text string, perm fs.FileMode) error {
	if to, err := filepath.EvalSymlinks(name); err == nil {
		name = to
	}
	f, err := os.CreateTemp(filepath.Dir(name), ".egressd-guide-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // unless it was renamed
	_, err = f.WriteString(text)
	err = errors.Join(err, f.Chmod(perm), f.Close())
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}

//go:build unix

// Package lookpath finds the file of a program as a shell does, with a directory
// and a PATH that need not be this process's:
//
//	path, err := lookpath.Find("git", "/home/user", "/usr/bin:/bin")
//	if err != nil {
//		os.Exit(lookpath.ExitCode(err))
//	}
package lookpath

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// notFoundError is a shell's "command not found".
type notFoundError struct{ name string }

func (e *notFoundError) Error() string { return e.name + ": command not found" }
func (e *notFoundError) Unwrap() error { return fs.ErrNotExist }

// Find reports the file of program name as a shell does: a name with a slash
// is a path, any other is searched for in list (PATH). Relative paths start at
// dir. The error wraps fs.ErrNotExist if there is no such program.
func Find(name, dir, list string) (string, error) {
	if strings.Contains(name, "/") {
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		return name, executable(name)
	}
	var found error
	for _, d := range filepath.SplitList(list) {
		if !filepath.IsAbs(d) {
			d = filepath.Join(dir, d)
		}
		path := filepath.Join(d, name)
		err := executable(path)
		if err == nil {
			return path, nil
		}
		if _, statErr := os.Stat(path); statErr == nil {
			found = err // there, but not to be executed; a directory that cannot be searched holds nothing
		}
	}
	if found != nil {
		return "", found
	}
	return "", &notFoundError{name}
}

// executable reports why path cannot be executed; nil: it can.
func executable(path string) error {
	fi, err := os.Stat(path)
	if err != nil {
		return err
	}
	if fi.IsDir() {
		return &fs.PathError{Op: "exec", Path: path, Err: syscall.EISDIR}
	}
	if err := unix.Faccessat(unix.AT_FDCWD, path, unix.X_OK, unix.AT_EACCESS); err != nil {
		return &fs.PathError{Op: "exec", Path: path, Err: err}
	}
	return nil
}

// ExitCode is a shell's exit code for a program that could not be executed.
func ExitCode(err error) int {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return 127
	}
	return 126
}

// Package landlock restricts the calling thread, and what it starts, with the
// kernel's Landlock:
//
//	err := landlock.Confine(landlock.Files{Write: []string{"/path/to/work"}})
//
// Pid 1 of a sandbox starts with it, so it imports little.
package landlock

import "errors"

// ErrNotSupported is returned if this kernel or platform has no Landlock.
var ErrNotSupported = errors.New("no Landlock")

// Files are what a confined thread may still open. Everything else is refused.
// No device, pipe or socket can be made anywhere.
type Files struct {
	Read    []string // directories: everything in them may be read
	Write   []string // directories: everything in them may be read, made, changed and removed
	Execute []string // files that may be read and executed; no other program may
}

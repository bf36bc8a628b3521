// Package landlock restricts the calling thread, and what it starts, with the
// kernel's Landlock. Pid 1 of a sandbox starts with it, so it imports little.
package landlock

import "errors"

// ErrNotSupported means that this kernel or platform has no Landlock.
var ErrNotSupported = errors.New("no Landlock")

// Files are what a confined thread may still open. Everything else is refused,
// devices, pipes and sockets are never made, and no program but those of Execute
// is run.
type Files struct {
	Read    []string // directories below which everything is read
	Write   []string // directories below which things are made, changed, removed and read
	Execute []string // files that are read and executed
}

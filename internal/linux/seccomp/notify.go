package seccomp

import "errors"

// Calls are system calls that a Listener is asked about.
type Calls struct {
	Connect bool // connect
	Write   bool // open and openat to write to a file as it is, and what makes directories and renames
	New     bool // with Write: also opens of files that must be new (O_EXCL) or are emptied (O_TRUNC)
}

// Request is one system call that waits for its answer.
type Request struct {
	ID     uint64
	Thread int // its number as this process sees it
	Call   int
	Args   [6]uint64
}

// ErrGone means that the caller no longer waits: it was killed or interrupted.
var ErrGone = errors.New("the caller is gone")

// ErrListened means that another listener is there. The kernel allows one.
var ErrListened = errors.New("another program listens to the system calls of this one already (a sandbox in a sandbox)")

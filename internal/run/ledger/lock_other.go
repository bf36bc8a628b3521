//go:build !unix

package ledger

import (
	"errors"
	"os"
)

// ErrInUse is that a journal is that of a run under way.
var ErrInUse = errors.New("in use")

// errNoLocks: without them nobody can tell whether a launcher lives.
var errNoLocks = errors.New("receipts need a system with flock")

func create(string) (*os.File, error) { return nil, errNoLocks }

func claim(string) (*os.File, error) { return nil, errNoLocks }

func private(os.FileInfo) error { return errNoLocks }

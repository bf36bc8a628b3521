//go:build !linux

package stage

import (
	"errors"
	"os"
)

// errNoSwap is the error of every exchange here: there is none that can be asked
// for below an os.Root.
var errNoSwap = errors.New("this system has no such rename")

func exchange(*os.Root, string, string) error { return errNoSwap }

func renameNew(*os.Root, string, string) error { return errNoSwap }

// statusTime is not read here.
func statusTime(os.FileInfo) int64 { return 0 }

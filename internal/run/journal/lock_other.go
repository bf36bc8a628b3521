//go:build !unix

package journal

import (
	"errors"
	"os"
)

var errUnsupported = errors.New("not supported on this system")

func lock(*os.File) error { return errUnsupported }

func held(*os.File) bool { return false }

func private(string) error { return errUnsupported }

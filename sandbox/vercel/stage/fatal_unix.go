//go:build unix

package stage

import (
	"errors"
	"syscall"
)

// fatal reports errors that every further file would meet, too.
func fatal(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EROFS) || errors.Is(err, syscall.EIO)
}

//go:build unix

package ship

import (
	"fmt"
	"io/fs"
	"syscall"
)

// identify names a file, whatever it is called.
func identify(info fs.FileInfo) (position, error) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return position{}, fmt.Errorf("%s has no number", info.Name())
	}
	return position{Dev: uint64(st.Dev), Ino: st.Ino}, nil //nolint:unconvert // int32 on darwin
}

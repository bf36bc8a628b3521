package watch

import (
	"io/fs"
	"syscall"
)

// identify fills in which file it is and when anything about it last changed.
// It reports how many names the file has.
func (s *state) identify(info fs.FileInfo) (links uint64) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 1
	}
	s.dev, s.ino, s.ctime = st.Dev, st.Ino, st.Ctim.Nano()
	return uint64(st.Nlink) //nolint:unconvert // 32 bits wide on arm64
}

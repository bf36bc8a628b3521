//go:build unix

package event

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// freeSpace reports how many bytes are free for an ordinary user, and there at all,
// in the file system of out; ok is false if out is no regular file.
func freeSpace(out io.Writer) (free, size uint64, ok bool) {
	f, isFile := out.(*os.File)
	if !isFile {
		return 0, 0, false
	}
	if fi, err := f.Stat(); err != nil || !fi.Mode().IsRegular() {
		return 0, 0, false
	}
	c, err := f.SyscallConn()
	if err != nil {
		return 0, 0, false
	}
	var st unix.Statfs_t
	if cerr := c.Control(func(fd uintptr) { err = unix.Fstatfs(int(fd), &st) }); cerr != nil || err != nil { // #nosec G115
		return 0, 0, false
	}
	block := uint64(st.Bsize) // #nosec G115 -- positive; its type differs between systems
	return uint64(st.Bavail) * block, st.Blocks * block, true
}

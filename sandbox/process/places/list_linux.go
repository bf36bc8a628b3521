package places

import (
	"bytes"
	"errors"
	"unsafe"

	"golang.org/x/sys/unix"
)

// lister reads directories, all into one buffer: a start reads up to MaxDirs of them,
// and os.ReadDir would allocate for every name in them. It is for one goroutine, and
// not for use within what each calls.
type lister struct {
	buf []byte // nil until the first directory
}

// listBuffer is the size of a lister's buffer, in bytes: most directories come in
// one piece.
const listBuffer = 16 << 10

// linux_dirent64: inode, offset, length of the record, type, name and a zero byte.
const (
	direntLength = 16
	direntType   = 18
	direntName   = 19
)

// each calls see for the first maxEntries entries of dir, with the type of each
// (unix.DT_DIR, ...), and reports whether these are all. The name is valid until see
// returns. What could be read counts.
func (l *lister) each(dir string, see func(name []byte, kind uint8)) (whole bool) {
	fd, err := again(func() (int, error) { return unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0) })
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	if l.buf == nil {
		l.buf = make([]byte, listBuffer)
	}
	for left := maxEntries; left > 0; {
		n, err := again(func() (int, error) { return unix.Getdents(fd, l.buf) })
		if err != nil || n <= 0 {
			return err == nil
		}
		for rest := l.buf[:n]; len(rest) > direntName && left > 0; {
			length := int(*(*uint16)(unsafe.Pointer(&rest[direntLength]))) // #nosec G103 -- in the machine's order
			if length <= direntName || length > len(rest) {
				return false
			}
			name, _, _ := bytes.Cut(rest[direntName:length], []byte{0})
			kind := rest[direntType]
			rest = rest[length:]
			if string(name) == "." || string(name) == ".." {
				continue
			}
			left--
			if kind == unix.DT_UNKNOWN {
				kind = kindOf(fd, string(name))
			}
			see(name, kind)
		}
	}
	return false
}

// again makes a system call until no signal interrupts it.
func again(call func() (int, error)) (n int, err error) {
	for {
		if n, err = call(); !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}

// kindOf asks for the type of an entry where the directory does not hold it.
func kindOf(dir int, name string) uint8 {
	var st unix.Stat_t
	if unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return unix.DT_UNKNOWN
	}
	return uint8(st.Mode & unix.S_IFMT >> 12) // DT_X is S_IFX without its zeros
}

// entry is one entry of a directory.
type entry struct {
	name string
	kind uint8 // unix.DT_DIR, ...
}

// all lists dir as each does.
func (l *lister) all(dir string) (out []entry) {
	l.each(dir, func(name []byte, kind uint8) { out = append(out, entry{string(name), kind}) })
	return out
}

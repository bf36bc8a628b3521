package places

import (
	"bytes"
	"errors"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// maxEntries is how many entries are read of one directory.
const maxEntries = 4096

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
	left := maxEntries
	whole = l.pieces(dir, func(fd int, piece []byte) bool {
		each(piece, func(name []byte, kind uint8) {
			if left--; left < 0 {
				return
			}
			if kind == unix.DT_UNKNOWN {
				kind = kindOf(fd, string(name))
			}
			see(name, kind)
		})
		return left > 0
	})
	return whole && left >= 0
}

// raw is what the kernel says of dir, for each; nil: it does not say all in one
// piece, or not of what type the entries are.
func (l *lister) raw(dir string) []byte {
	var out []byte
	n := 0
	whole := l.pieces(dir, func(_ int, piece []byte) bool {
		n++
		out = slices.Clone(piece)
		each(piece, func(_ []byte, kind uint8) {
			if kind == unix.DT_UNKNOWN {
				out = nil
			}
		})
		return n == 1 && out != nil
	})
	if !whole {
		return nil
	}
	return out
}

// pieces calls see for what the kernel says of dir, buffer by buffer, as long as it
// reports true, and reports whether that was all.
func (l *lister) pieces(dir string, see func(fd int, piece []byte) bool) bool {
	fd, err := again(func() (int, error) { return unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0) })
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	if l.buf == nil {
		l.buf = make([]byte, listBuffer)
	}
	for {
		n, err := again(func() (int, error) { return unix.Getdents(fd, l.buf) })
		if err != nil || n <= 0 {
			return err == nil
		}
		if !see(fd, l.buf[:n]) {
			return false
		}
	}
}

// each calls see for the entries in a piece of a directory.
func each(piece []byte, see func(name []byte, kind uint8)) {
	for rest := piece; len(rest) > direntName; {
		length := int(*(*uint16)(unsafe.Pointer(&rest[direntLength]))) // #nosec G103 -- in the machine's order
		if length <= direntName || length > len(rest) {
			return
		}
		name, _, _ := bytes.Cut(rest[direntName:length], []byte{0})
		kind := rest[direntType]
		if rest = rest[length:]; string(name) != "." && string(name) != ".." {
			see(name, kind)
		}
	}
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

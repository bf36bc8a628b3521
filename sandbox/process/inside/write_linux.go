package inside

import (
	"bytes"
	"errors"
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"egressd/internal/linux/seccomp"
	"egressd/sandbox/process/control"
)

// writer hears of files that programs inside want to write, and tells of those
// that mounts keep as they are.
//
// It is no wall: every call goes on, and the mounts judge it. What it looks at may
// change meanwhile, and only the record is wrong then. A file that the program's
// user may not write anyway is not told.
type writer struct {
	calls *seccomp.Listener
	told  *notices

	nested bool // a program may see other mounts than pid 1
}

const maxPath = unix.PathMax

// write answers one call that would write.
func (w *writer) write(r seccomp.Request) {
	t := caller(r.Thread)
	dir, name := writtenName(r)
	p := t.text(name)
	if p != "" {
		if p = w.readOnly(t, dir, p); p != "" && w.calls.Valid(r.ID) {
			w.told.tell(control.Refusal{Call: control.CallWrite, Path: p})
		}
	}
	w.calls.Continue(r.ID) //nolint:errcheck // the caller is gone then
}

// writtenName reports the directory and the name that a call is about, or for a
// rename its target.
func writtenName(r seccomp.Request) (dir int32, name uint64) {
	switch r.Call {
	case unix.SYS_OPENAT, unix.SYS_MKDIRAT:
		return int32(r.Args[0]), r.Args[1] // #nosec: an int to the kernel
	case unix.SYS_RENAMEAT, unix.SYS_RENAMEAT2:
		return int32(r.Args[2]), r.Args[3] // #nosec: as above
	}
	if r.Call == renameCall {
		return unix.AT_FDCWD, r.Args[1]
	}
	return unix.AT_FDCWD, r.Args[0]
}

// text is the string at address, "" if there is none. What is read ends at a
// page, beyond which there may be nothing.
func (t caller) text(address uint64) string {
	const page = 4096
	buf := make([]byte, 256, maxPath)
	for n := 0; n < maxPath; {
		next := min(maxPath-n, int(page-(address+uint64(n))%page), 256)
		buf = buf[:n+next]
		if t.read(buf[n:n+next], address+uint64(n)) != 0 {
			return ""
		}
		if i := bytes.IndexByte(buf[n:n+next], 0); i >= 0 {
			return string(buf[:n+i])
		}
		n += next
	}
	return ""
}

// readOnly reports the file that p, relative to the directory dir, is about, if a
// read-only mount keeps it from being written; else "".
func (w *writer) readOnly(t caller, dir int32, p string) string {
	switch {
	case p[0] == '/' && w.nested:
		p = t.proc("root" + p)
	case p[0] == '/':
	case dir == unix.AT_FDCWD:
		p = t.proc("cwd/" + p)
	default:
		p = t.proc("fd/" + strconv.Itoa(int(dir)) + "/" + p)
	}
	err := unix.Faccessat(unix.AT_FDCWD, p, unix.W_OK, 0)
	if errors.Is(err, unix.EROFS) {
		return realName(p)
	}
	if !errors.Is(err, unix.ENOENT) {
		return ""
	}
	parent, name := path.Split(strings.TrimRight(p, "/")) // links in it are the kernel's to follow
	if name == "" || !errors.Is(unix.Faccessat(unix.AT_FDCWD, parent, unix.W_OK, 0), unix.EROFS) {
		return ""
	}
	if parent = realName(parent); parent == "" {
		return ""
	}
	return path.Join(parent, name)
}

// realName is p without links.
func realName(p string) string {
	fd, err := unix.Open(p, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return ""
	}
	defer unix.Close(fd)
	name, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
	if err != nil || name[0] != '/' {
		return ""
	}
	return name
}

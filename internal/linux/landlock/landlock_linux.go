package landlock

import (
	"errors"
	"io/fs"
	"unsafe"

	"golang.org/x/sys/unix"
)

// File rights by what they are for.
const (
	readFile = unix.LANDLOCK_ACCESS_FS_READ_FILE
	readAll  = readFile | unix.LANDLOCK_ACCESS_FS_READ_DIR
	// change has no right to make devices, pipes or sockets.
	change = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_REFER |
		unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_SYM |
		unix.LANDLOCK_ACCESS_FS_REMOVE_FILE | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR
)

// attr is struct landlock_ruleset_attr.
type attr struct{ fs, net, scoped uint64 }

// ABI reports the version of the kernel's Landlock; 0: there is none.
func ABI() int {
	const versionFlag = 1 // LANDLOCK_CREATE_RULESET_VERSION
	abi, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, versionFlag)
	if errno != 0 {
		return 0
	}
	return int(abi)
}

// Scope limits the calling thread, and what it starts, to the abstract unix
// sockets and the signals of its own domain (ABI 6), and to sockets by path from
// ABI 9 on. With an older Landlock, or none, it does nothing and reports no
// error. The thread has set no_new_privs.
func Scope() error {
	abi := ABI()
	if abi < 6 {
		return nil
	}
	a := attr{scoped: unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL}
	if abi >= 9 {
		a.fs = unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX
	}
	fd, err := create(a)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := restrict(fd); !errors.Is(err, unix.EOPNOTSUPP) {
		return err
	}
	return nil
}

// Confine leaves the calling thread, and what it starts, the files of f, no TCP
// port (ABI 4), and the sockets and signals of its own domain (ABI 6). Files that
// are open stay usable. Nothing can undo it. The thread has set no_new_privs. The
// error is [ErrNotSupported] if there is no Landlock.
//
// Threat: code that has taken a confined process over opens the host's files by
// path -> the kernel refuses whatever f does not name. Left over: it can read the
// names, sizes and owners of files that the user can, and on ABI 1 and 2 cut
// them short with truncate(2), which a system-call filter must refuse.
func Confine(f Files) error {
	abi := ABI()
	if abi < 1 {
		return ErrNotSupported
	}
	a := handled(abi)
	fd, err := create(a)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	for _, g := range []struct {
		paths  []string
		rights uint64
	}{{f.Read, readAll}, {f.Write, readAll | change}, {f.Execute, readFile | unix.LANDLOCK_ACCESS_FS_EXECUTE}} {
		for _, path := range g.paths {
			if err := allow(fd, path, g.rights&a.fs); err != nil {
				return &fs.PathError{Op: "landlock", Path: path, Err: err}
			}
		}
	}
	return restrict(fd)
}

// handled is everything that version abi can refuse.
func handled(abi int) attr {
	a := attr{fs: unix.LANDLOCK_ACCESS_FS_REFER - 1}
	if abi >= 2 {
		a.fs |= unix.LANDLOCK_ACCESS_FS_REFER
	}
	if abi >= 3 {
		a.fs |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if abi >= 4 {
		a.net = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
	}
	if abi >= 5 {
		a.fs |= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	if abi >= 6 {
		a.scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	if abi >= 9 {
		a.fs |= unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX
	}
	return a
}

// create makes a rule set. Older kernels accept a longer attr if its end is zero.
func create(a attr) (int, error) {
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&a)), unsafe.Sizeof(a), 0)
	if errno != 0 {
		return -1, errno
	}
	return int(fd), nil
}

// allow grants rights at path and, if it is a directory, below it.
func allow(ruleset int, path string, rights uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	rule := unix.LandlockPathBeneathAttr{Allowed_access: rights, Parent_fd: int32(fd)}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(ruleset), unix.LANDLOCK_RULE_PATH_BENEATH,
		uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

func restrict(ruleset int) error {
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(ruleset), 0, 0); errno != 0 {
		return errno
	}
	return nil
}

package inside

import (
	"errors"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Landlock's words (linux/landlock.h) that x/sys may not know yet.
const (
	landlockScopeAbstractUnix = 1 << 0  // ABI 6
	landlockScopeSignal       = 1 << 1  // ABI 6
	landlockResolveUnix       = 1 << 16 // ABI 9: connecting to a pathname socket
)

// scopeLandlock puts a second wall, where the kernel has one, around unix
// sockets and signals: only those made inside can be reached. The namespaces
// stop most of it already; sockets by path are stopped by mounts alone on
// older kernels. A kernel without Landlock, or with an older one, is no error.
func scopeLandlock() error {
	const versionFlag = 1 // LANDLOCK_CREATE_RULESET_VERSION
	abi, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, versionFlag)
	if errno != 0 || abi < 6 {
		return nil
	}
	attr := struct{ fs, net, scoped uint64 }{scoped: landlockScopeAbstractUnix | landlockScopeSignal}
	if abi >= 9 {
		attr.fs = landlockResolveUnix
	}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if errno != 0 {
		return errno
	}
	defer unix.Close(int(fd))
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0); errno != 0 && !errors.Is(errno, unix.EOPNOTSUPP) {
		return errno
	}
	return nil
}

//go:build linux && (amd64 || arm64)

package seccomp

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Listener answers for the system calls of other threads. Its methods are safe
// for concurrent use.
type Listener struct{ fd int }

// retNotify is SECCOMP_RET_USER_NOTIF, linux/seccomp.h.
const retNotify = 0x7fc00000

// Listen makes the calling thread alone, and what it starts, ask about calls. The
// calling goroutine is locked to its thread: no other one may have its threads
// made from this one. Where another filter has an answer of its own for a call
// (an error, a signal), that one counts. The thread has set no_new_privs.
//
// Somebody must call Receive before the thread does what it would ask about. When
// this process ends, the kernel answers ENOSYS.
func Listen(c Calls) (*Listener, error) {
	code, err := assemble(filter(c.rules()))
	if err != nil {
		return nil, err
	}
	if err := knownSizes(); err != nil {
		return nil, err
	}
	prog := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]} // #nosec: see TestJumpsFit
	// Once a request was received, only a deadly signal takes it back: what was
	// done for the caller would be done twice. Kernels before 5.19 cannot.
	flags := uintptr(unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV)
	fd, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&prog)))
	if e == unix.EINVAL {
		flags &^= unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
		fd, _, e = unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&prog)))
	}
	runtime.KeepAlive(code)
	switch e {
	case 0:
	case unix.ENOSYS, unix.EINVAL:
		return nil, errors.Join(ErrNotSupported, os.NewSyscallError("seccomp listener", e))
	case unix.EBUSY:
		return nil, ErrListened
	default:
		return nil, os.NewSyscallError("seccomp listener", e)
	}
	l := &Listener{int(fd)} // the kernel made it close-on-exec
	// Caller and answer share a processor (Linux 6.6); else it only takes longer.
	unix.Syscall(unix.SYS_IOCTL, fd, unix.SECCOMP_IOCTL_NOTIF_SET_FLAGS, unix.SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP) //nolint:errcheck // see above
	return l, nil
}

// rules are what is asked about.
func (c Calls) rules() (out []rule) {
	ask := block{ret(retNotify)}
	if c.Connect {
		out = append(out, rule{"connect", unix.SYS_CONNECT, ask, "unix sockets of outside"})
	}
	if !c.Write {
		return out
	}
	const why = "a file that may not be written, of which somebody should hear"
	out = append(
		out,
		rule{"openat", unix.SYS_OPENAT, c.writingFlags(2), why},
		rule{"mkdirat", unix.SYS_MKDIRAT, ask, why},
		rule{"renameat", unix.SYS_RENAMEAT, ask, why},
		rule{"renameat2", unix.SYS_RENAMEAT2, ask, why},
	)
	return append(out, c.archWriting(why)...)
}

// writingFlags asks if the flags of an open, argument i, are for writing to a file
// as it is. One that must be new (O_EXCL) or is emptied (O_TRUNC) is asked about
// with New only: whatever makes files by the thousand (tar, git, npm, pip,
// compilers) makes them so, and would take half as long again.
func (c Calls) writingFlags(i uint32) block {
	var skip block
	if !c.New {
		skip = when(bpf.JumpBitsSet, unix.O_EXCL|unix.O_TRUNC, ret(retAllow))
	}
	return join(
		block{loadArg(i)},
		skip,
		when(bpf.JumpBitsSet, unix.O_WRONLY|unix.O_RDWR|unix.O_CREAT, ret(retNotify)),
		block{ret(retAllow)},
	)
}

// notification is struct seccomp_notif, answer struct seccomp_notif_resp, sizes
// struct seccomp_notif_sizes (linux/seccomp.h).
type notification struct {
	id      uint64
	thread  uint32
	flags   uint32
	call    int32
	arch    uint32
	pointer uint64
	args    [6]uint64
}

type answer struct {
	id    uint64
	value int64
	errno int32
	flags uint32
}

// knownSizes reports an error if this kernel's structures are others: it writes
// and reads as much as it knows.
func knownSizes() error {
	var sizes struct{ notification, answer, data uint16 }
	if _, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_NOTIF_SIZES, 0, uintptr(unsafe.Pointer(&sizes))); e != 0 {
		return errors.Join(ErrNotSupported, os.NewSyscallError("seccomp listener", e))
	}
	if uintptr(sizes.notification) != unsafe.Sizeof(notification{}) || uintptr(sizes.answer) != unsafe.Sizeof(answer{}) {
		return fmt.Errorf("%w: its notifications have %d bytes and its answers %d", ErrNotSupported, sizes.notification, sizes.answer)
	}
	return nil
}

// Receive waits for the next request. An error is final.
func (l *Listener) Receive() (Request, error) {
	for {
		var n notification
		_, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(l.fd), unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(&n)))
		switch e {
		case 0:
			return Request{ID: n.id, Thread: int(n.thread), Call: int(n.call), Args: n.args}, nil
		case unix.EINTR, unix.ENOENT: // whoever asked was killed meanwhile
			continue
		}
		return Request{}, os.NewSyscallError("seccomp notification", e)
	}
}

// Valid reports whether the caller still waits: what was read of it since
// Receive is of it, and not of a thread that has got its number.
func (l *Listener) Valid(id uint64) bool {
	_, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(l.fd), unix.SECCOMP_IOCTL_NOTIF_ID_VALID, uintptr(unsafe.Pointer(&id)))
	return e == 0
}

// Answer returns errno to the caller, whose call is not made; 0 is success.
func (l *Listener) Answer(id uint64, errno unix.Errno) error {
	return l.send(answer{id: id, errno: -int32(errno)})
}

// Continue lets the kernel make the call. It reads the arguments in memory again,
// which may be others by now, and looks the descriptors up again.
func (l *Listener) Continue(id uint64) error {
	return l.send(answer{id: id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE})
}

func (l *Listener) send(a answer) error {
	for {
		_, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(l.fd), unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(&a)))
		switch e {
		case 0:
			return nil
		case unix.EINTR:
			continue
		case unix.ENOENT:
			return ErrGone
		}
		return os.NewSyscallError("seccomp answer", e)
	}
}

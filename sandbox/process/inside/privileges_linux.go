package inside

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"egressd/internal/linux/kernelversion"
	"egressd/internal/linux/landlock"
	"egressd/internal/linux/seccomp"
	"egressd/sandbox/process/control"
)

// reservedPids are those below which the kernel does not start over.
const reservedPids = 300

// errOtherThreads means that this process cannot change the credentials of its
// other threads (a binary linked with cgo) and must execute itself again.
var errOtherThreads = errors.New("other threads keep their capabilities")

func (in *initProcess) processes() int {
	return cmp.Or(in.cfg.Limits.Processes, control.DefaultProcesses())
}

// limitProcesses bounds the process namespace where the kernel keeps the limit
// per namespace (6.14 and later). Older kernels share the setting with the
// host, so there it is left alone and RLIMIT_NPROC, which does not bind uid 0,
// is all there is.
//
// Threat: uid 0 makes 300 processes more than it may, as the numbers below
// reservedPids are given out once -> numbers begin above them. Left over: those 300
// on a kernel without CHECKPOINT_RESTORE.
func (in *initProcess) limitProcesses() error {
	if !kernelversion.AtLeast(6, 14) {
		return nil
	}
	err := os.WriteFile("/proc/sys/kernel/ns_last_pid", []byte(strconv.Itoa(reservedPids+1)), 0)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.WriteFile("/proc/sys/kernel/pid_max", []byte(strconv.Itoa(in.processes()+reservedPids)), 0)
}

// dropCapabilities throws every capability away for good, for this thread and
// what it starts, and then for every other thread of this process.
//
// Threat: the program uses a capability over its own namespaces to change the
// capture rules or the mounts, or gets one back by executing as uid 0 or a file
// with capabilities -> none in any set, the bounding set empty, the rules that
// make uid 0 special locked off. Left over: a uid 0 owns files of uid 0.
func (in *initProcess) dropCapabilities() error {
	// Daemons' keys sit in the session's and the user's keyrings.
	if !in.skips("keyring") {
		if err := joinSessionKeyring(); err != nil {
			return fmt.Errorf("session keyring: %w", err)
		}
	}
	if err := in.setLimits(); err != nil {
		return err
	}
	if in.skips("caps") {
		return nil
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("ambient capabilities: %w", err)
	}
	for c := uintptr(0); ; c++ {
		err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
		if errors.Is(err, unix.EINVAL) && c > 0 {
			break // past the last capability this kernel knows
		}
		if err != nil {
			return fmt.Errorf("bounding set: %w", err)
		}
	}
	// linux/securebits.h; x/sys has no names for them.
	const (
		noRoot       = 1<<0 | 1<<1
		noSetuidFix  = 1<<2 | 1<<3
		keepCapsLock = 1 << 5
		noAmbient    = 1<<6 | 1<<7
	)
	if err := unix.Prctl(unix.PR_SET_SECUREBITS, noRoot|noSetuidFix|keepCapsLock|noAmbient, 0, 0, 0); err != nil {
		return fmt.Errorf("securebits: %w", err)
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	if err := unix.Capset(&header, &none[0]); err != nil {
		return fmt.Errorf("capabilities: %w", err)
	}
	_, _, errno := syscall.AllThreadsSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&none[0])), 0)
	switch errno {
	case 0:
		return nil
	case syscall.ENOTSUP:
		return errOtherThreads
	}
	return fmt.Errorf("capabilities of other threads: %w", errno)
}

// joinSessionKeyring leaves the person's session keyring for an empty one. A
// kernel without keyrings, or a container that forbids them, has none to leave.
func joinSessionKeyring() error {
	const anonymous = 0
	_, _, errno := unix.Syscall(unix.SYS_KEYCTL, unix.KEYCTL_JOIN_SESSION_KEYRING, anonymous, 0)
	switch errno {
	case 0, unix.ENOSYS, unix.EPERM:
		return nil
	}
	return errno
}

// coreLimit is the size of core files at which the kernel writes none and starts no
// core_pattern helper either; at 0 it starts one (fs/coredump.c). The system-call
// filter keeps it there.
const coreLimit = 1

// setLimits bounds what one sandbox can take from the machine. Left over: where the
// hard limit of core files is 0 already, it cannot become 1.
func (in *initProcess) setLimits() error {
	if !in.skips("core") {
		var r unix.Rlimit
		if err := unix.Getrlimit(unix.RLIMIT_CORE, &r); err != nil {
			return fmt.Errorf("getrlimit: %w", err)
		}
		r.Cur, r.Max = min(r.Max, coreLimit), min(r.Max, coreLimit)
		if err := unix.Setrlimit(unix.RLIMIT_CORE, &r); err != nil {
			return fmt.Errorf("setrlimit: %w", err)
		}
	}
	for resource, limit := range map[int]int{
		unix.RLIMIT_NPROC: in.processes(), unix.RLIMIT_NOFILE: in.cfg.Limits.Files, unix.RLIMIT_FSIZE: in.cfg.Limits.Disk,
	} {
		if limit == 0 {
			continue
		}
		var r unix.Rlimit
		if err := unix.Getrlimit(resource, &r); err != nil {
			return fmt.Errorf("getrlimit: %w", err)
		}
		r.Max = min(r.Max, uint64(limit)) // #nosec G115 -- positive
		r.Cur = min(r.Cur, r.Max)
		if resource == unix.RLIMIT_NOFILE {
			r.Cur = r.Max // what was asked for, also above the soft limit outside
		}
		if err := unix.Setrlimit(resource, &r); err != nil {
			return fmt.Errorf("setrlimit: %w", err)
		}
	}
	return nil
}

// confine sets up the layers that need no capability, on this thread and what
// it starts; the system-call filter covers every thread.
func (in *initProcess) confine() error {
	if !in.skips("dumpable") {
		// No program inside may read the init's memory or descriptors.
		if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
			return fmt.Errorf("dumpable: %w", err)
		}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no_new_privs: %w", err)
	}
	if !in.skips("landlock") {
		if err := landlock.Scope(); err != nil {
			return fmt.Errorf("landlock: %w", err)
		}
	}
	if err := in.openDiag(); err != nil {
		return err
	}
	if in.skips("seccomp") {
		return nil
	}
	if err := seccomp.Install(seccomp.Options{Nested: in.cfg.Nested}); err != nil {
		return fmt.Errorf("system-call filter: %w", err)
	}
	return nil
}

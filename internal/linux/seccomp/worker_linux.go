//go:build linux && (amd64 || arm64)

package seccomp

import (
	"fmt"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// InstallWorker loads the filter of a process that computes, reads and writes
// files, and talks on sockets that it was given: it makes no socket and no
// process. Unlike the other filters it allows by list. It holds for every thread
// of the process pid, which is the caller's own, and nothing can remove it. The
// calling thread has set no_new_privs or holds CAP_SYS_ADMIN.
func InstallWorker(pid int) error { return install(workerFilter(uint32(pid))) }

// workerFilter answers EPERM to what is not on the list, and ENOSYS to calls that
// the Go runtime and C libraries then replace by older ones.
//
// Threat: a bug in the interpreter runs an attacker's code in the worker -> there
// is no call to make a socket, to connect one, to start a program or a process,
// to signal, trace or read another process, to map code, or to mount; files are
// Landlock's. Left over: what the list allows on descriptors that are there.
func workerFilter(pid uint32) block {
	f := nativeOnly()
	for _, r := range append(workerRules(pid), fallBackRules()...) {
		f = append(f, when(bpf.JumpEqual, r.number, r.body...)...)
	}
	for _, n := range workerCalls() {
		f = append(f, when(bpf.JumpEqual, n, ret(retAllow))...)
	}
	return append(f, ret(errno(unix.EPERM)))
}

// workerCalls are allowed whatever their arguments are.
func workerCalls() []uint32 {
	return []uint32{
		// Memory and threads, for the Go runtime.
		unix.SYS_MUNMAP, unix.SYS_MADVISE, unix.SYS_MREMAP, unix.SYS_BRK, unix.SYS_MINCORE, unix.SYS_FUTEX, unix.SYS_SCHED_YIELD, unix.SYS_SCHED_GETAFFINITY,
		unix.SYS_SET_ROBUST_LIST, unix.SYS_RSEQ, unix.SYS_MEMBARRIER, unix.SYS_EXIT, unix.SYS_EXIT_GROUP, unix.SYS_RESTART_SYSCALL,
		unix.SYS_RT_SIGACTION, unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGRETURN, unix.SYS_SIGALTSTACK,
		unix.SYS_GETPID, unix.SYS_GETTID, unix.SYS_GETUID, unix.SYS_GETEUID, unix.SYS_GETGID, unix.SYS_GETEGID, unix.SYS_GETRANDOM,
		unix.SYS_CLOCK_GETTIME, unix.SYS_CLOCK_GETRES, unix.SYS_GETTIMEOFDAY, unix.SYS_NANOSLEEP, unix.SYS_CLOCK_NANOSLEEP, unix.SYS_GETRUSAGE, unix.SYS_UNAME,

		// Descriptors.
		unix.SYS_READ, unix.SYS_WRITE, unix.SYS_READV, unix.SYS_WRITEV, unix.SYS_PREAD64, unix.SYS_PWRITE64, unix.SYS_LSEEK, unix.SYS_CLOSE,
		unix.SYS_FSTAT, unix.SYS_FTRUNCATE, unix.SYS_FALLOCATE, unix.SYS_FSYNC, unix.SYS_FDATASYNC, unix.SYS_FCHMOD, unix.SYS_FADVISE64, unix.SYS_FSTATFS,
		unix.SYS_COPY_FILE_RANGE, unix.SYS_SENDFILE, unix.SYS_SPLICE, unix.SYS_GETDENTS64, unix.SYS_DUP, unix.SYS_DUP3, unix.SYS_PIPE2,
		unix.SYS_EPOLL_CREATE1, unix.SYS_EPOLL_CTL, unix.SYS_EPOLL_PWAIT, unix.SYS_EVENTFD2, unix.SYS_PPOLL,

		// Sockets that were given.
		unix.SYS_SENDMSG, unix.SYS_RECVMSG, unix.SYS_SHUTDOWN, unix.SYS_GETSOCKOPT, unix.SYS_GETSOCKNAME, unix.SYS_GETPEERNAME,

		// Files by name, which Landlock judges.
		unix.SYS_OPENAT, unix.SYS_STATX, unix.SYS_NEWFSTATAT, unix.SYS_FACCESSAT, unix.SYS_FACCESSAT2, unix.SYS_READLINKAT, unix.SYS_GETCWD,
		unix.SYS_MKDIRAT, unix.SYS_UNLINKAT, unix.SYS_RENAMEAT, unix.SYS_RENAMEAT2, unix.SYS_LINKAT, unix.SYS_SYMLINKAT,
		unix.SYS_FCHMODAT, unix.SYS_FCHMODAT2, unix.SYS_UTIMENSAT, unix.SYS_UMASK,
	}
}

// workerRules are for calls that are allowed with some arguments only.
func workerRules(pid uint32) []rule {
	return []rule{
		{"clone", unix.SYS_CLONE, threadRule(), "a process, a namespace"},
		{"mmap", unix.SYS_MMAP, noCodeRule(), "code that was not in the program"},
		{"mprotect", unix.SYS_MPROTECT, noCodeRule(), "as mmap"},
		{"tgkill", unix.SYS_TGKILL, join(block{loadArg(0)}, oneOf(errno(unix.EPERM), pid), block{ret(retAllow)}), "signals to other processes"},
		{"ioctl", unix.SYS_IOCTL, join(block{loadArg(1)}, oneOf(errno(unix.ENOTTY), unix.TCGETS, unix.TIOCGWINSZ), block{ret(retAllow)}), "typing into the terminal of the shell outside"},
		{"fcntl", unix.SYS_FCNTL, join(block{loadArg(1)}, oneOf(errno(unix.EPERM),
			unix.F_GETFD, unix.F_SETFD, unix.F_GETFL, unix.F_SETFL, unix.F_DUPFD_CLOEXEC, unix.F_GETPIPE_SZ, unix.F_SETPIPE_SZ),
			block{ret(retAllow)}), "signals to other processes by owner of a file"},
		{"prlimit64", unix.SYS_PRLIMIT64, join(block{loadArg(0)}, oneOf(errno(unix.EPERM), 0, pid), block{ret(retAllow)}), "limits of other processes"},
	}
}

// fallBackRules answer as an older kernel would: the caller does it another way,
// which is judged here.
func fallBackRules() []rule {
	enosys := refuse(unix.ENOSYS)
	return []rule{
		{"clone3", unix.SYS_CLONE3, enosys, "its flags are in memory, where no filter can look"},
		{"openat2", unix.SYS_OPENAT2, enosys, "nobody needs it"},
		{"close_range", unix.SYS_CLOSE_RANGE, enosys, "nobody needs it"},
		{"io_uring_setup", unix.SYS_IO_URING_SETUP, enosys, "makes sockets without the socket call"},
	}
}

// threadRule allows clone for threads of this process and nothing more.
func threadRule() block {
	const must = unix.CLONE_VM | unix.CLONE_FS | unix.CLONE_FILES | unix.CLONE_SIGHAND | unix.CLONE_THREAD
	return join(
		block{loadArg(0)},
		when(bpf.JumpBitsSet, newNamespace|unix.CLONE_VFORK|unix.CLONE_PTRACE|unix.CLONE_PARENT, ret(errno(unix.EPERM))),
		block{and(must)},
		oneOf(errno(unix.EPERM), must),
		block{ret(retAllow)},
	)
}

// noCodeRule refuses memory that is executable.
func noCodeRule() block {
	return join(
		block{loadArg(2)},
		when(bpf.JumpBitsSet, unix.PROT_EXEC, ret(errno(unix.EPERM))),
		block{ret(retAllow)},
	)
}

// WorkerSupported reports why this kernel can't filter; nil: it can.
func WorkerSupported() error {
	action := uint32(retErrno)
	if _, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_ACTION_AVAIL, 0, uintptr(unsafe.Pointer(&action))); e != 0 && e != unix.EINVAL {
		return fmt.Errorf("%w: %w", ErrNotSupported, e)
	}
	return nil
}

//go:build linux

package hermetic

import (
	"context"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"egressd/hermetic/command"
)

// probes are commands of the tests alone: they do in the worker what somebody
// would do who has taken it over.
func probes() command.Table {
	return command.Table{
		"probe": func(_ context.Context, c *command.Call) int {
			for _, name := range c.Args[1:] {
				fmt.Fprintf(c.Stdout, "%s %s\n", name, answer(attempts()[name]()))
			}
			return 0
		},
		"fds": func(_ context.Context, c *command.Call) int {
			fmt.Fprintln(c.Stdout, descriptors())
			return 0
		},
		"pause": func(ctx context.Context, _ *command.Call) int {
			<-ctx.Done()
			return 1
		},
		"deaf": func(context.Context, *command.Call) int { select {} },
		"spin": func(context.Context, *command.Call) int {
			for n := 0; ; n++ {
				_ = n
			}
		},
		"grow":    grow,
		"chatter": chatter,
		"fetch":   fetch,
		"crowd":   crowd,
		"both": func(_ context.Context, c *command.Call) int {
			for range 100 {
				fmt.Fprintln(c.Stdout, "out")
				fmt.Fprintln(c.Stderr, "err")
			}
			return 0
		},
		"bomb": func(_ context.Context, c *command.Call) int { return bomb(c.Args[1]) },
	}
}

// answer is how an attempt went, in a word.
func answer(errno syscall.Errno) string {
	if errno == 0 {
		return "done"
	}
	return unix.ErrnoName(errno)
}

func raw(number uintptr, args ...uintptr) syscall.Errno {
	args = append(args, make([]uintptr, 6)...)
	_, _, errno := unix.RawSyscall6(number, args[0], args[1], args[2], args[3], args[4], args[5])
	return errno
}

func text(s string) uintptr {
	p, _ := unix.BytePtrFromString(s)
	return uintptr(unsafe.Pointer(p))
}

func open(path string, flags int) func() syscall.Errno {
	return func() syscall.Errno {
		fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0o600)
		if err == nil {
			unix.Close(fd)
			return 0
		}
		return err.(syscall.Errno)
	}
}

// call is a system call that is refused by its number.
func call(number uintptr, args ...uintptr) func() syscall.Errno {
	return func() syscall.Errno { return raw(number, args...) }
}

// attempts are the ways out.
func attempts() map[string]func() syscall.Errno {
	none := ^uintptr(0) // a descriptor, process or pointer that is none: without the wall the error is another one
	return map[string]func() syscall.Errno{
		"socket":           call(unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_STREAM, 0),
		"socket-udp":       call(unix.SYS_SOCKET, unix.AF_INET6, unix.SOCK_DGRAM, 0),
		"socket-unix":      call(unix.SYS_SOCKET, unix.AF_UNIX, unix.SOCK_STREAM, 0),
		"socketpair":       call(unix.SYS_SOCKETPAIR, none, unix.SOCK_STREAM, 0, 0),
		"connect":          call(unix.SYS_CONNECT, none, 0, 0),
		"bind":             call(unix.SYS_BIND, none, 0, 0),
		"listen":           call(unix.SYS_LISTEN, none, 0),
		"accept4":          call(unix.SYS_ACCEPT4, none, 0, 0, 0),
		"sendto":           call(unix.SYS_SENDTO, none, 0, 0, 0, 0, 0),
		"execve":           call(unix.SYS_EXECVE, text("/none"), 0, 0),
		"execveat":         call(unix.SYS_EXECVEAT, none, text("none"), 0, 0, 0),
		"fork":             call(unix.SYS_CLONE, none, 0), // flags that the kernel refuses as well: nothing is forked without the wall
		"clone3":           call(unix.SYS_CLONE3, 0, 0),
		"ptrace":           call(unix.SYS_PTRACE, none, none, 0, 0),
		"process_vm_readv": call(unix.SYS_PROCESS_VM_READV, none, 0, 0, 0, 0, 0),
		"pidfd_open":       call(unix.SYS_PIDFD_OPEN, none, 0),
		"kill":             call(unix.SYS_KILL, uintptr(os.Getppid()), 0),
		"tgkill":           call(unix.SYS_TGKILL, uintptr(os.Getppid()), uintptr(os.Getppid()), 0),
		"mount":            call(unix.SYS_MOUNT, none, none, none, 0, 0),
		"unshare":          call(unix.SYS_UNSHARE, unix.CLONE_NEWUSER),
		"setns":            call(unix.SYS_SETNS, none, 0),
		"chroot":           call(unix.SYS_CHROOT, none),
		"bpf":              call(unix.SYS_BPF, none, 0, 0),
		"io_uring_setup":   call(unix.SYS_IO_URING_SETUP, 0, 0),
		"keyctl":           call(unix.SYS_KEYCTL, none),
		"perf_event_open":  call(unix.SYS_PERF_EVENT_OPEN, 0, 0, 0, 0, 0),
		"userfaultfd":      call(unix.SYS_USERFAULTFD, none),
		"memfd_create":     call(unix.SYS_MEMFD_CREATE, 0, 0),
		"truncate":         call(unix.SYS_TRUNCATE, text("/etc/none"), 0),
		"mknodat":          call(unix.SYS_MKNODAT, none, text("x"), unix.S_IFCHR|0o666, uintptr(unix.Mkdev(1, 3))),
		"chown":            call(unix.SYS_FCHOWNAT, none, text("x"), 0, 0, 0),
		"setxattr":         call(unix.SYS_SETXATTR, none, none, 0, 0, 0),
		"prctl":            call(unix.SYS_PRCTL, none),
		"setrlimit-other":  call(unix.SYS_PRLIMIT64, uintptr(os.Getppid()), unix.RLIMIT_NOFILE, 0, 0),
		"reserve":          call(unix.SYS_MMAP, 0, 1<<34, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE, none, 0),
		"mmap-code":        call(unix.SYS_MMAP, 0, 4096, unix.PROT_READ|unix.PROT_EXEC, unix.MAP_PRIVATE|unix.MAP_ANON, none, 0),
		"ioctl-sti":        call(unix.SYS_IOCTL, none, unix.TIOCSTI, 0),
		"ioctl-linux":      call(unix.SYS_IOCTL, none, 0x541c, 0),
		"fcntl-own":        call(unix.SYS_FCNTL, none, unix.F_SETOWN, 0),
		"handle":           call(unix.SYS_OPEN_BY_HANDLE_AT, none, 0, 0),

		"read-passwd": open("/etc/passwd", unix.O_RDONLY),
		"list-root":   open("/", unix.O_RDONLY|unix.O_DIRECTORY),
		"read-proc":   open("/proc/self/environ", unix.O_RDONLY),
		"dev-null":    open("/dev/null", unix.O_RDWR),
		"make-in-tmp": open("/tmp/egressd-probe", unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL),
		"parent-dir":  open("..", unix.O_RDONLY|unix.O_DIRECTORY),
		"own-dir":     open(".", unix.O_RDONLY|unix.O_DIRECTORY),
		"make-here":   open("made", unix.O_WRONLY|unix.O_CREAT),
		"mkfifo":      call(unix.SYS_MKNODAT, at(), text("fifo"), unix.S_IFIFO|0o600, 0),
		"tcp": func() syscall.Errno {
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
			if err != nil {
				return err.(syscall.Errno)
			}
			defer unix.Close(fd)
			if err := unix.Connect(fd, &unix.SockaddrInet4{Port: 9, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
				return err.(syscall.Errno)
			}
			return 0
		},
	}
}

func at() uintptr { fd := unix.AT_FDCWD; return uintptr(fd) }

// bomb ends the worker in the way that is asked for.
func bomb(how string) int {
	switch how {
	case "stack":
		return deeper(0)
	case "memory":
		all := make([]byte, 8<<30)
		for i := range all {
			all[i] = 1
		}
		return int(all[len(all)/2])
	case "panic":
		go panic("from a probe") // beyond the reach of whoever recovers
		select {}
	case "time":
		for n := 0; ; n++ {
			_ = n
		}
	case "x32":
		raw(0x40000000 | unix.SYS_GETPID)
	}
	return 0
}

// grow takes memory step by step until it is told to stop.
func grow(ctx context.Context, _ *command.Call) int {
	var all [][]byte
	for ctx.Err() == nil {
		piece := make([]byte, 1<<16)
		for i := range piece {
			piece[i] = 1
		}
		all = append(all, piece)
	}
	return len(all) & 1
}

// chatter writes for ever, whatever comes of it, until the run is over.
func chatter(ctx context.Context, c *command.Call) int {
	for ctx.Err() == nil {
		fmt.Fprintln(c.Stdout, "y")
	}
	return 0
}

func deeper(n int) int {
	if n < 0 {
		return 0 // it never comes to that
	}
	var frame [64]int
	frame[n%64] = n
	return deeper(n+1) + frame[(n+1)%64]
}

// descriptors lists which files are open, by device and inode.
func descriptors() string {
	var open []string
	for fd := range 64 {
		var st unix.Stat_t
		if unix.Fstat(fd, &st) == nil {
			open = append(open, fmt.Sprintf("%d:%d", st.Dev, st.Ino))
		}
	}
	return strings.Join(open, " ")
}

// inherit makes f pass to every process that this one starts.
func inherit(t *testing.T, f *os.File) {
	t.Helper()
	if _, err := unix.FcntlInt(f.Fd(), unix.F_SETFD, 0); err != nil {
		t.Fatal(err)
	}
}

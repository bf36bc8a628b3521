package process

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Exit codes of an attack.
const (
	attackSucceeded = 0
	attackStopped   = 40
	attackUnknown   = 41
)

// attackMain is the attacker: it tries one thing and says whether it worked.
func attackMain(name string, args []string) int {
	try, ok := attacks[name]
	if !ok {
		fmt.Println("unknown attack", name)
		return attackUnknown
	}
	if err := try(args); err != nil {
		fmt.Println(name, "stopped:", err)
		return attackStopped
	}
	fmt.Println(name, "SUCCEEDED")
	return attackSucceeded
}

// attacks return nil when they worked.
var attacks = map[string]func(args []string) error{
	"connect-unix":       func(a []string) error { return connectUnix(a[0]) },
	"connect-late":       func(a []string) error { return connectLate(a[0]) },
	"connect-undumpable": func(a []string) error { return connectUndumpable(a[0]) },
	"race-address":       func(a []string) error { return raceAddress(a[0]) },
	"race-descriptor":    func(a []string) error { return raceDescriptor(a[0]) },
	"race-path":          func(a []string) error { return racePath(a[0]) },
	"serve-unix":         func(a []string) error { return serveUnix(a[0]) },
	"sockets-inside":     func(a []string) error { return socketsInside(a[0]) },
	"socket": func(a []string) error {
		family, _ := strconv.Atoi(a[0])
		kind, _ := strconv.Atoi(a[1])
		fd, err := unix.Socket(family, kind, 0)
		if err == nil {
			unix.Close(fd)
		}
		return err
	},
	"write-open": func(a []string) error {
		f, err := os.OpenFile(a[0], os.O_WRONLY, 0)
		if err == nil {
			f.Close()
		}
		return err
	},
	"overwrite": func(a []string) error { return os.WriteFile(a[0], []byte("evil"), 0o644) },
	"replace": func(a []string) error {
		evil := filepath.Join(filepath.Dir(a[0]), "evil")
		if err := os.WriteFile(evil, []byte("evil"), 0o644); err != nil {
			return err
		}
		return os.Rename(evil, a[0])
	},
	"hard-link": func(a []string) error { // another name, by which to write
		if err := os.Link(a[0], a[1]); err != nil {
			return err
		}
		return os.WriteFile(a[1], []byte("evil"), 0o644)
	},
	"create": func(a []string) error {
		if err := os.MkdirAll(filepath.Dir(a[0]), 0o755); err != nil {
			return err
		}
		return os.WriteFile(a[0], []byte("evil"), 0o755)
	},
	"new-directory": func(a []string) error { // the directory moved away, another one in its place
		if err := os.Rename(a[0], a[0]+".away"); err != nil {
			return err
		}
		return os.Mkdir(a[0], 0o755)
	},
	"relink": func(a []string) error {
		if err := os.Remove(a[0]); err != nil {
			return err
		}
		return os.WriteFile(a[0], []byte("evil"), 0o644)
	},
	"content": func(a []string) error {
		data, err := os.ReadFile(a[0])
		if err == nil && len(data) == 0 {
			return errors.New("it is empty")
		}
		return err
	},
	"remove": func(a []string) error { return os.Remove(a[0]) },
	"rename": func(a []string) error { return os.Rename(a[0], a[0]+".moved") },
	"read": func(a []string) error {
		_, err := os.ReadFile(a[0])
		return err
	},
	"descriptor": func(a []string) error {
		_, err := os.Readlink("/proc/self/fd/" + a[0])
		return err
	},
	"readlink": func(a []string) error {
		_, err := os.Readlink(a[0])
		return err
	},
	"ptrace": func(a []string) error {
		pid, _ := strconv.Atoi(a[0])
		return unix.PtraceAttach(pid)
	},
	"process-memory": func(a []string) error {
		pid, _ := strconv.Atoi(a[0])
		var b [1]byte
		local := []unix.Iovec{{Base: &b[0], Len: 1}}
		_, err := unix.ProcessVMReadv(pid, local, []unix.RemoteIovec{{Base: 0x400000, Len: 1}}, 0)
		if errors.Is(err, unix.EFAULT) {
			return nil // it was let in; there is just nothing there
		}
		return err
	},
	"unshare": func(a []string) error {
		flags, _ := strconv.Atoi(a[0])
		return unix.Unshare(flags)
	},
	"clone-userns": func([]string) error {
		attr := &syscall.ProcAttr{Sys: &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER}}
		pid, err := syscall.ForkExec("/bin/true", []string{"true"}, attr)
		if err == nil {
			syscall.Wait4(pid, nil, 0, nil)
		}
		return err
	},
	"nested-proc":     func([]string) error { return enterNested("fresh-proc") },
	"use-nested-proc": func([]string) error { return enterNested("use-fresh-proc") },
	"fresh-proc":      func([]string) error { return mountFreshProc() },
	"use-fresh-proc":  func([]string) error { return useFreshProc() },
	"setns": func(a []string) error {
		f, err := os.Open(a[0])
		if err != nil {
			return err
		}
		defer f.Close()
		return unix.Setns(int(f.Fd()), 0)
	},
	"mount":        func([]string) error { return unix.Mount("none", "/mnt", "tmpfs", 0, "") },
	"umount":       func(a []string) error { return unix.Unmount(a[0], unix.MNT_DETACH) },
	"remount":      func(a []string) error { return unix.Mount("", a[0], "", unix.MS_REMOUNT|unix.MS_BIND, "") },
	"io_uring":     func([]string) error { return ioURing() },
	"keyring":      func(a []string) error { return findKey(a[0]) },
	"bpf":          func([]string) error { return rawCall(unix.SYS_BPF, 0, 0, 0) },
	"userfault":    func([]string) error { return rawCall(unix.SYS_USERFAULTFD, 0, 0, 0) },
	"perf":         func([]string) error { return rawCall(unix.SYS_PERF_EVENT_OPEN, 0, 0, 0) },
	"tiocsti":      func([]string) error { return pushInput() },
	"shm":          func(a []string) error { return attachShared(a[0]) },
	"mqueue":       func(a []string) error { return openQueue(a[0]) },
	"host-process": func(a []string) error { return findProcess(a[0]) },
	"signal": func(a []string) error {
		pid, _ := strconv.Atoi(a[0])
		return unix.Kill(pid, 0)
	},
	"bind-low": func([]string) error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
		if err != nil {
			return err
		}
		return unix.Bind(fd, &unix.SockaddrInet4{Port: 81})
	},
	"netlink-route": func([]string) error { return dropRoutes() },
	"udp": func(a []string) error {
		c, err := net.DialTimeout("udp", a[0], time.Second)
		if err != nil {
			return err
		}
		defer c.Close()
		for range 3 {
			if _, err = c.Write([]byte("x")); err != nil {
				return err
			}
			c.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
			if _, err = c.Read(make([]byte, 1)); err == nil || !errors.Is(err, os.ErrDeadlineExceeded) {
				return err
			}
		}
		return err
	},
	"tcp": func(a []string) error {
		c, err := net.DialTimeout("tcp", a[0], time.Second)
		if err != nil {
			return err
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(2 * time.Second))
		c.Write([]byte("hello\n"))
		b := make([]byte, 64)
		n, err := c.Read(b)
		if err == nil && !strings.HasPrefix(string(b[:n]), "canary") {
			return fmt.Errorf("somebody else answered: %q", b[:n])
		}
		return err
	},
	"fork-bomb": func(a []string) error { return forkBomb(a[0]) },
}

func connectUnix(path string) error {
	c, err := net.DialTimeout("unix", path, time.Second)
	if err != nil {
		return err
	}
	return c.Close()
}

func rawCall(nr, a, b, c uintptr) error {
	_, _, errno := unix.Syscall(nr, a, b, c)
	switch errno {
	case 0, unix.EINVAL, unix.EFAULT, unix.E2BIG:
		return nil // the kernel looked at the arguments: it was let in
	}
	return errno
}

func ioURing() error {
	var params [120]byte
	fd, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&params)), 0)
	if errno != 0 {
		return errno
	}
	unix.Close(int(fd))
	return nil
}

// findKey looks for a key of the session that started the launcher.
func findKey(description string) error {
	_, err := unix.KeyctlSearch(unix.KEY_SPEC_SESSION_KEYRING, "user", description, 0)
	return err
}

func pushInput() error {
	f, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	c := byte('x')
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, f.Fd(), unix.TIOCSTI, uintptr(unsafe.Pointer(&c))); errno != 0 {
		return errno
	}
	return nil
}

func attachShared(key string) error {
	k, _ := strconv.Atoi(key)
	_, err := unix.SysvShmGet(k, 0, 0)
	return err
}

func openQueue(name string) error {
	p, err := unix.BytePtrFromString(name)
	if err != nil {
		return err
	}
	_, _, errno := unix.Syscall6(unix.SYS_MQ_OPEN, uintptr(unsafe.Pointer(p)), unix.O_RDONLY, 0, 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// findProcess looks for a process whose command line holds marker, other than
// the attacker and its parents.
func findProcess(marker string) error {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range files {
		data, _ := os.ReadFile(f)
		if s := string(data); strings.Contains(s, marker) && !strings.Contains(s, "attack") {
			return nil
		}
	}
	return errors.New("not there")
}

func dropRoutes() error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	// RTM_DELLINK of lo: an error tells whether it was a matter of rights.
	msg := make([]byte, 32)
	msg[0] = 32
	msg[4] = unix.RTM_NEWLINK
	msg[6] = unix.NLM_F_REQUEST | unix.NLM_F_ACK
	msg[20] = 1 // index of lo; flags down
	msg[28] = unix.IFF_UP
	if err := unix.Sendto(fd, msg, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	b := make([]byte, 4096)
	n, _, err := unix.Recvfrom(fd, b, 0)
	if err != nil {
		return err
	}
	if n >= 20 {
		if e := -int32(uint32(b[16]) | uint32(b[17])<<8 | uint32(b[18])<<16 | uint32(b[19])<<24); e != 0 {
			return unix.Errno(e)
		}
	}
	return nil
}

// forkBomb starts processes that wait, and succeeds when n can be had.
func forkBomb(n string) error {
	want, _ := strconv.Atoi(n)
	var pids []int
	defer func() {
		for _, p := range pids {
			unix.Kill(p, unix.SIGKILL)
		}
	}()
	for range want {
		pid, err := syscall.ForkExec("/bin/sleep", []string{"sleep", "30"}, nil)
		if err != nil {
			return err
		}
		pids = append(pids, pid)
	}
	return nil
}

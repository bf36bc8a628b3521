package inside

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// caller is a thread inside that waits for pid 1's answer. Its number is its own
// until the listener says otherwise: whoever has read something asks Valid before
// acting on it.
type caller int

func (t caller) proc(name string) string { return "/proc/" + strconv.Itoa(int(t)) + "/" + name }

// read copies memory of the caller.
func (t caller) read(to []byte, address uint64) unix.Errno {
	if len(to) == 0 {
		return 0
	}
	local := unix.Iovec{Base: &to[0], Len: uint64(len(to))}
	remote := unix.RemoteIovec{Base: uintptr(address), Len: len(to)}
	n, _, e := unix.Syscall6(unix.SYS_PROCESS_VM_READV, uintptr(t), uintptr(unsafe.Pointer(&local)), 1, uintptr(unsafe.Pointer(&remote)), 1, 0)
	if e == 0 && int(n) != len(to) {
		e = unix.EFAULT
	}
	return e
}

// descriptor duplicates a descriptor of the caller, which the caller of
// descriptor closes.
func (t caller) descriptor(fd int) (int, error) {
	const cloexec = 0 // pidfds and their copies are close-on-exec as they are
	pid, err := unix.PidfdOpen(int(t), cloexec|unix.PIDFD_THREAD)
	if errors.Is(err, unix.EINVAL) { // before Linux 6.9, threads share their process's descriptors here
		process, err := t.process()
		if err != nil {
			return -1, err
		}
		pid, err = unix.PidfdOpen(process, cloexec)
		if err != nil {
			return -1, err
		}
	} else if err != nil {
		return -1, err
	}
	defer unix.Close(pid)
	return unix.PidfdGetfd(pid, fd, 0)
}

// process is the number of the process that the caller is a thread of.
func (t caller) process() (int, error) {
	data, err := os.ReadFile(t.proc("status"))
	if err != nil {
		return 0, err
	}
	_, rest, _ := bytes.Cut(data, []byte("\nTgid:"))
	line, _, ok := bytes.Cut(rest, []byte("\n"))
	n, err := strconv.Atoi(string(bytes.TrimSpace(line)))
	if !ok {
		return 0, errors.New("no process")
	}
	return n, err
}

// open opens path, as the caller names it from where it is, without using it
// (O_PATH). Whoever opened it closes it. The file is the one that the caller
// means if nobody changes the path meanwhile; in any case it is one file.
func (t caller) open(path string, flags int) (int, error) {
	if path == "" {
		return -1, unix.ENOENT
	}
	how := unix.OpenHow{Flags: uint64(unix.O_PATH | unix.O_CLOEXEC | flags)}
	base := "cwd"
	switch {
	case strings.HasPrefix(path, "/proc/self/"):
		path = t.proc(strings.TrimPrefix(path, "/proc/self/"))
	case strings.HasPrefix(path, "/proc/"):
	case path[0] == '/':
		// Its root, and its mounts, may be others (a sandbox in the sandbox).
		base, how.Resolve = "root", unix.RESOLVE_IN_ROOT
	}
	dir, err := unix.Open(t.proc(base), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	defer unix.Close(dir)
	for range 16 {
		fd, err := unix.Openat2(dir, path, &how)
		if !errors.Is(err, unix.EAGAIN) { // a rename raced with ".." below a root
			return fd, err
		}
	}
	return -1, unix.EAGAIN
}

package inside

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"egressd/internal/linux/seccomp"
	"egressd/internal/linux/unixdiag"
	"egressd/sandbox/process/control"
)

// connector makes the connections of programs inside for them.
//
// Threat: a server outside (docker, a database, an agent) listens on a unix
// socket below a directory that the program sees, in whatever network namespace,
// made before or after the start -> every connect is made here, on a copy of the
// caller's socket and to a copy of the address that it gave; one by path only to
// sockets of this network namespace, which none outside belongs to, and to the
// very file that was looked at.
//
// The kernel must not go on by itself (Continue) with any connect, not even with
// one on an inet socket: it looks the descriptor and the address up again, and
// another thread may have put a unix socket and a path there. So all of them are
// made here, and none blocks a handler: see dial.
//
// What is different for programs: a server sees pid 1 as its peer's process (the
// user is right); Landlock rules about TCP that a program has made for itself do
// not hold for what is made here, its seccomp filters do.
//
// Left over: datagrams with an address (sendto, sendmsg) are not seen here, since
// every sendmsg would have to be; masks cover the sockets found at the start. On
// Linux with Landlock ABI 9 the kernel judges all of it, and nobody is asked.
type connector struct {
	calls *seccomp.Listener
	told  *notices
	masks []string // what hides a socket of outside

	nested bool // programs may have network namespaces of their own

	mu    sync.Mutex // held while these are used
	diag  *unixdiag.Conn
	asked map[[2]uint64]int // socket files, by device and number, whose servers are inside

	waiting waiting
}

const maxAddress = 128 // sizeof(struct sockaddr_storage)

// connect answers one connect(fd, address, length).
func (c *connector) connect(r seccomp.Request) {
	t := caller(r.Thread)
	length := int32(r.Args[2]) // #nosec: an int to the kernel
	if length < 0 || length > maxAddress {
		c.answer(r.ID, unix.EINVAL)
		return
	}
	a := attempt{id: r.ID, file: -1, address: make([]byte, length)}
	var err error
	if a.fd, err = t.descriptor(int(int32(r.Args[0]))); err != nil { // #nosec: as length
		c.refuse(r.ID, err)
		return
	}
	if e := t.read(a.address, r.Args[1]); e != 0 {
		a.close()
		c.refuse(r.ID, e)
		return
	}
	if path, ok := unixPath(a.fd, a.address); ok {
		if a.file, err = c.judge(t, path); err != nil {
			a.close()
			c.refuse(r.ID, err)
			return
		}
		a.address = fileAddress(a.file)
	}
	if !c.calls.Valid(r.ID) {
		a.close()
		return
	}
	c.dial(a)
}

// errOutside means that a path leads to a socket that is not of this network
// namespace.
var errOutside = errors.New("not a socket of this sandbox")

// refuse answers with what err says. What pid 1 may not look into is refused.
func (c *connector) refuse(id uint64, err error) {
	var e unix.Errno
	switch {
	case errors.Is(err, errOutside), errors.Is(err, unix.EPERM), errors.Is(err, unix.ESRCH), !errors.As(err, &e):
		e = unix.EACCES
	}
	c.answer(id, e)
}

func (c *connector) answer(id uint64, e unix.Errno) {
	c.calls.Answer(id, e) //nolint:errcheck // the caller is gone then
}

// unixPath reports the path in address if fd is a unix socket.
func unixPath(fd int, address []byte) (string, bool) {
	const head = 2 // sun_family
	domain, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
	if err != nil || domain != unix.AF_UNIX || len(address) <= head || address[head] == 0 {
		return "", false // the kernel judges the rest: abstract names are of the namespace
	}
	if *(*uint16)(unsafe.Pointer(&address[0])) != unix.AF_UNIX {
		return "", false // AF_UNSPEC, or an error
	}
	path, _, _ := bytes.Cut(address[head:], []byte{0})
	return string(path), true
}

// fileAddress is the address of the socket file that fd is open on.
func fileAddress(fd int) []byte {
	address := []byte{0, 0}
	*(*uint16)(unsafe.Pointer(&address[0])) = unix.AF_UNIX
	return append(append(address, "/proc/self/fd/"+strconv.Itoa(fd)...), 0)
}

// judge opens the socket file that the caller means by path, or reports
// errOutside.
func (c *connector) judge(t caller, path string) (int, error) {
	fd, err := t.open(path, 0)
	if err != nil {
		return -1, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		unix.Close(fd)
		return -1, err
	}
	name, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
	if err != nil {
		name = path
	}
	// What a mask is made of has no name any more.
	name, unnamed := strings.CutSuffix(name, " (deleted)")
	masked := unnamed && slices.Contains(c.masks, name)
	if !masked && (st.Mode&unix.S_IFMT != unix.S_IFSOCK || c.own(t, fd, &st)) {
		return fd, nil // what is no socket, the kernel refuses
	}
	unix.Close(fd)
	c.told.tell(control.Refusal{Call: control.CallConnect, Path: name})
	return -1, errOutside
}

// own reports whether the socket file fd belongs to a socket of this network
// namespace.
//
// Threat: two files look like one, since the kernel reports half of a socket
// file's number, and btrfs numbers files by subvolume -> where numbers are not
// unique, a connection of pid 1's own shows whether the server is inside. So it
// does where programs may make network namespaces of their own, whose sockets are
// in another list. Left over: then a server of outside is connected to, and left at
// once, without a byte from inside.
func (c *connector) own(t caller, fd int, st *unix.Stat_t) bool {
	if st.Ino>>32 == 0 && c.listed(unix.Major(st.Dev), unix.Minor(st.Dev), uint32(st.Ino)) { // #nosec: looked at before
		return true
	}
	major, minor, inode, ok := t.kernelName(fd)
	if !ok || !c.listed(major, minor, uint32(inode)) { // #nosec: see own
		return c.nested && c.askOnce(fd, st)
	}
	var fs unix.Statfs_t
	if unix.Fstatfs(fd, &fs) != nil {
		return false
	}
	if inode>>32 == 0 && fs.Type != unix.BTRFS_SUPER_MAGIC {
		return true
	}
	return c.askOnce(fd, st)
}

// listed reports whether a socket of this network namespace is bound to that file.
func (c *connector) listed(major, minor, inode uint32) (found bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.diag.Each(unixdiag.Any, func(s unixdiag.Socket) bool {
		found = s.Major == major && s.Minor == minor && s.Inode == inode
		return !found
	})
	return found && err == nil
}

// askOnce is servedInside, asked once for a file: as long as its copy here is open,
// no other file gets its number.
func (c *connector) askOnce(fd int, st *unix.Stat_t) bool {
	name := [2]uint64{st.Dev, st.Ino}
	c.mu.Lock()
	_, known := c.asked[name]
	c.mu.Unlock()
	if known || !servedInside(fd) {
		return known
	}
	kept, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if old, twice := c.asked[name]; twice {
		unix.Close(old)
	}
	for other, fd := range c.asked {
		if len(c.asked) < maxAsked {
			break
		}
		unix.Close(fd)
		delete(c.asked, other)
	}
	if c.asked == nil {
		c.asked = map[[2]uint64]int{}
	}
	c.asked[name] = kept
	return true
}

const maxAsked = 32

// servedInside reports whether the server behind a socket file is a process of
// this namespace. The server sees a connection that ends at once. A socket for
// datagrams cannot be asked; whoever gives addresses with them is not judged either.
func servedInside(file int) bool {
	for _, kind := range []int{unix.SOCK_STREAM, unix.SOCK_SEQPACKET} {
		fd, err := unix.Socket(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		if err != nil {
			return false
		}
		e := rawConnect(fd, fileAddress(file))
		peer, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
		unix.Close(fd)
		if e == 0 {
			return err == nil && peer.Pid > 0 // 0: it has no number here
		}
		if e != unix.EPROTOTYPE {
			return false
		}
	}
	return true
}

// kernelName reports the device and the number that the kernel itself has for an
// open file, which stat(2) changes on btrfs and overlay file systems.
func (t caller) kernelName(fd int) (major, minor uint32, inode uint64, ok bool) {
	data, err := os.ReadFile("/proc/self/fdinfo/" + strconv.Itoa(fd))
	if err != nil {
		return 0, 0, 0, false
	}
	inode, err = strconv.ParseUint(field(data, "ino:"), 10, 64)
	if err != nil { // before Linux 5.14
		return 0, 0, 0, false
	}
	mount := field(data, "mnt_id:") + " "
	for _, path := range []string{"/proc/self/mountinfo", t.proc("mountinfo")} {
		table, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		for line := range bytes.Lines(table) {
			if !bytes.HasPrefix(line, []byte(mount)) {
				continue
			}
			// mount ID, parent ID, major:minor
			words := bytes.SplitN(line, []byte(" "), 4)
			if len(words) < 4 {
				return 0, 0, 0, false
			}
			left, right, _ := bytes.Cut(words[2], []byte(":"))
			a, err1 := strconv.ParseUint(string(left), 10, 32)
			b, err2 := strconv.ParseUint(string(right), 10, 32)
			return uint32(a), uint32(b), inode, err1 == nil && err2 == nil
		}
	}
	return 0, 0, 0, false
}

// field is the value on the line of data that begins with name.
func field(data []byte, name string) string {
	for line := range bytes.Lines(data) {
		if value, ok := bytes.CutPrefix(line, []byte(name)); ok {
			return string(bytes.TrimSpace(value))
		}
	}
	return ""
}

func rawConnect(fd int, address []byte) unix.Errno {
	var p unsafe.Pointer
	if len(address) > 0 {
		p = unsafe.Pointer(&address[0])
	}
	_, _, e := unix.Syscall(unix.SYS_CONNECT, uintptr(fd), uintptr(p), uintptr(len(address)))
	return e
}

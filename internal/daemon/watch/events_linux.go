package watch

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"egressd/internal/linux/inotify"
)

// What is asked about a directory: names that come, go or change, and writers
// that leave. Not IN_MODIFY, which would wake us for every line of a log beside.
const dirMask = unix.IN_CREATE | unix.IN_MOVED_TO | unix.IN_MOVED_FROM | unix.IN_DELETE | unix.IN_ATTRIB |
	unix.IN_CLOSE_WRITE | unix.IN_DELETE_SELF | unix.IN_MOVE_SELF | unix.IN_ONLYDIR

// What is asked about a file. It is asked of the file itself, since of one that
// is mounted alone no directory tells.
const fileMask = unix.IN_MODIFY | unix.IN_CLOSE_WRITE | unix.IN_ATTRIB | unix.IN_DELETE_SELF | unix.IN_MOVE_SELF

// What is asked about a directory further up: that it goes, and nothing of what is in it.
const selfMask = unix.IN_DELETE_SELF | unix.IN_MOVE_SELF | unix.IN_ONLYDIR

const eventBufferBytes = 16 << 10

// kernelEvents is the kernel's word on Linux. See inotify(7).
type kernelEvents struct {
	fd     int // of file; used by place only, which is never called after close
	file   *os.File
	statfs func(path string, st *unix.Statfs_t) error // seam for tests
	signal chan struct{}
	ended  chan struct{}

	mu     sync.Mutex
	byWD   map[int]*mark
	byPath map[string]*mark
}

// mark is one watch.
type mark struct {
	wd       int
	dir      bool
	names    map[string]bool // of a directory: those that matter
	creating map[string]bool // of a directory: made, and not closed by its writer so far
	open     bool            // of a file: changed, and not closed by its writer so far
}

func newEvents() (source, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	switch {
	case err == unix.EMFILE:
		return nil, errors.New("this user has no inotify instance left: raise fs.inotify.max_user_instances (sysctl)")
	case err != nil:
		return nil, fmt.Errorf("inotify: %w", err)
	}
	n := &kernelEvents{
		statfs: unix.Statfs, fd: fd, file: os.NewFile(uintptr(fd), "inotify"),
		signal: make(chan struct{}, 1), ended: make(chan struct{}),
		byWD: make(map[int]*mark), byPath: make(map[string]*mark),
	}
	go n.read()
	return n, nil
}

func (n *kernelEvents) changes() <-chan struct{} { return n.signal }

func (n *kernelEvents) close() {
	_ = n.file.Close()
	<-n.ended
}

func (n *kernelEvents) place(files []string, on way) (err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	kept := make(map[int]*mark, len(n.byWD))
	byPath := make(map[string]*mark, len(n.byPath))
	add := func(path string, mask uint32) *mark {
		if m := byPath[path]; m != nil {
			return m
		}
		wd, failed := unix.InotifyAddWatch(n.fd, path, mask|unix.IN_MASK_ADD)
		if failed != nil {
			// A missing name is notified by the directory that it will be in.
			if failed != unix.ENOENT && err == nil {
				err = unwatched(path, failed)
			}
			return nil
		}
		m := kept[wd]
		if m == nil {
			if m = n.byWD[wd]; m == nil {
				m = &mark{wd: wd, dir: mask&unix.IN_ONLYDIR != 0, creating: make(map[string]bool)}
			}
			m.names = make(map[string]bool)
			kept[wd] = m
		}
		byPath[path] = m
		if err == nil {
			err = n.local(path)
		}
		return m
	}
	for _, at := range on.names {
		if m := add(at.dir, dirMask); m != nil {
			m.names[at.name] = true
		}
	}
	for _, f := range files {
		add(f, fileMask)
	}
	for _, dir := range on.dirs {
		add(dir, selfMask)
	}
	for wd := range n.byWD {
		if kept[wd] == nil {
			_, _ = unix.InotifyRmWatch(n.fd, uint32(wd)) // gone already where its inode is
		}
	}
	n.byWD, n.byPath = kept, byPath
	return err
}

// unwatched says why a path is not watched, and what to do.
func unwatched(path string, err error) error {
	if err == unix.ENOSPC {
		return errors.New("this user has no inotify watch left: raise fs.inotify.max_user_watches (sysctl)")
	}
	return fmt.Errorf("inotify: %s: %w", path, err)
}

// localTypes are the file systems on which nothing changes unless this kernel
// changes it, see statfs(2).
var localTypes = []int64{
	unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC, unix.TMPFS_MAGIC, unix.RAMFS_MAGIC,
	unix.OVERLAYFS_SUPER_MAGIC, unix.SQUASHFS_MAGIC, unix.EROFS_SUPER_MAGIC_V1, unix.ISOFS_SUPER_MAGIC, unix.MSDOS_SUPER_MAGIC,
	0x2fc12fc1, // ZFS
	0xca451a4e, // bcachefs
}

// local reports an error for a path on a file system that others may change: NFS,
// or a host's directory in a virtual machine.
func (n *kernelEvents) local(path string) error {
	var st unix.Statfs_t
	if n.statfs(path, &st) != nil || slices.Contains(localTypes, int64(st.Type)) { //nolint:unconvert // 32 bits wide on 386
		return nil // what cannot be asked is gone, which is reported
	}
	return fmt.Errorf("%s is on a file system that others may change (type %#x)", path, st.Type)
}

func (n *kernelEvents) writing(file string, at entry, links uint64) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if m := n.byPath[file]; m != nil && m.open {
		return true
	}
	m := n.byPath[at.dir]
	return m != nil && m.creating[at.name] && links <= 1 // else link(2) made the name, and nobody closes that
}

// read hands events over until the descriptor is closed.
func (n *kernelEvents) read() {
	defer close(n.ended)
	buf := make([]byte, eventBufferBytes)
	for {
		size, err := n.file.Read(buf)
		if err != nil {
			return
		}
		if n.take(buf[:size]) {
			select {
			case n.signal <- struct{}{}:
			default: // it is said already
			}
		}
	}
}

// take books a buffer of events and reports whether any of them matters.
func (n *kernelEvents) take(buf []byte) (matters bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for e := range inotify.Events(buf) {
		matters = n.book(e.WD, e.Mask, string(e.Name)) || matters
	}
	return matters
}

// book notes one event. n.mu is held.
func (n *kernelEvents) book(wd int, mask uint32, name string) (matters bool) {
	if mask&unix.IN_Q_OVERFLOW != 0 {
		for _, m := range n.byWD { // what writers did is lost with the rest
			m.open = false
			clear(m.creating)
		}
		return true
	}
	m := n.byWD[wd]
	switch {
	case m == nil:
		return false // of a watch that was taken away
	case !m.dir:
		if mask&unix.IN_MODIFY != 0 {
			m.open = true
		}
		if mask&unix.IN_CLOSE_WRITE != 0 {
			m.open = false
		}
		return true
	case name == "":
		return true // the directory itself
	case !m.names[name]:
		return false
	}
	if mask&unix.IN_CREATE != 0 && mask&unix.IN_ISDIR == 0 {
		m.creating[name] = true
	}
	if mask&(unix.IN_CLOSE_WRITE|unix.IN_MOVED_TO|unix.IN_MOVED_FROM|unix.IN_DELETE) != 0 {
		delete(m.creating, name)
	}
	return true
}

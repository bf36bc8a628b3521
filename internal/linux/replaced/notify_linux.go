package replaced

import (
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"egressd/internal/linux/inotify"
)

// What is asked about a directory, and about the file itself, whose directory may
// be unreadable.
const (
	dirMask  = unix.IN_CREATE | unix.IN_MOVED_TO | unix.IN_MOVED_FROM | unix.IN_DELETE | unix.IN_ONLYDIR
	fileMask = unix.IN_ATTRIB | unix.IN_DELETE_SELF | unix.IN_MOVE_SELF
)

// notifier is an inotify instance, or none (fd is -1). See inotify(7).
type notifier struct {
	fd    int
	parts map[string]bool // the words of all watched paths: nothing else matters
}

func newNotifier(names []*name) *notifier {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		fd = -1 // the user has no instance left
	}
	n := &notifier{fd: fd, parts: map[string]bool{"": true}} // "": the watched file itself
	for _, one := range names {
		for part := range strings.SplitSeq(one.path, "/") {
			n.parts[part] = true
		}
	}
	return n
}

func (n *notifier) close() {
	if n.fd >= 0 {
		unix.Close(n.fd)
	}
}

// place watches every directory on the way to a name, and the name. It reports
// whether all of them can be watched.
func (n *notifier) place(names []*name) (complete bool) {
	if n.fd < 0 {
		return false
	}
	complete = true
	for _, one := range names {
		if _, err := unix.InotifyAddWatch(n.fd, one.path, fileMask|unix.IN_DONT_FOLLOW); err != nil && err != unix.ENOENT {
			complete = false
		}
		for dir := filepath.Dir(one.path); ; dir = filepath.Dir(dir) {
			if _, err := unix.InotifyAddWatch(n.fd, dir, dirMask); err != nil && err != unix.ENOENT {
				complete = false
			}
			if dir == "/" {
				break
			}
		}
	}
	return complete
}

// drain reads what is there and reports whether any of it is about a watched path.
func (n *notifier) drain() (matters bool) {
	var buf [16 << 10]byte
	for range maxReads {
		size, err := unix.Read(n.fd, buf[:])
		if err != nil || size <= 0 {
			return matters
		}
		for e := range inotify.Events(buf[:size]) {
			matters = matters || n.parts[string(e.Name)] // an overflow has no name either
		}
	}
	return true
}

// maxReads bounds one drain, which a program that makes files all the time could
// keep busy.
const maxReads = 64

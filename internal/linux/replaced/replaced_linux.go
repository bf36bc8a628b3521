package replaced

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"egressd/internal/linux/mountinfo"
)

// Times of a Watch. Implementation constants: a run that is over at once pays for
// none of this. To close an inotify instance takes the kernel up to 20 ms.
const (
	firstCheck   = 30 * time.Millisecond  // after Run was called
	earlyChecks  = 50 * time.Millisecond  // between checks, while there is no inotify
	notifyAfter  = time.Second            // of Run, inotify is asked for
	blindChecks  = 250 * time.Millisecond // where inotify is not to be had, or not everywhere
	restTime     = 2 * time.Millisecond   // after a notice that is about other files
	seldomChecks = 5 * time.Second        // where it is: for what other machines do to a network file system
)

// maxDigest bounds how much of a file is read for its digest.
const maxDigest = 64 << 20

// Watch watches names. Its methods are not for concurrent use.
type Watch struct {
	names []*name
	table *os.File // the mountinfo file; nil: there is none
}

// name is one path and what it led to. The open file keeps the kernel from giving
// its inode number to another one.
type name struct {
	path    string
	file    *os.File
	id      identity
	mounted bool // a mount was seen on it
	told    identity
	over    bool // it was told as exposed: nothing worse can happen to it
}

// identity is which file a name leads to; zero: none.
type identity struct{ dev, ino uint64 }

// Open notes what paths lead to; a last component that is a link is watched as a
// link. Paths must be absolute and clean. A missing one is an error. The caller
// closes the Watch.
func Open(paths []string) (*Watch, error) {
	w := new(Watch)
	for _, path := range paths {
		n := &name{path: path}
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
		if err != nil { // unreadable, a link or a socket: held all the same
			fd, err = unix.Open(path, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		}
		if err != nil {
			w.Close()
			return nil, &fs.PathError{Op: "open", Path: path, Err: err}
		}
		n.file = os.NewFile(uintptr(fd), path)
		w.names = append(w.names, n)
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil {
			w.Close()
			return nil, &fs.PathError{Op: "stat", Path: path, Err: err}
		}
		n.id = identity{uint64(st.Dev), st.Ino} //nolint:unconvert // 32 bits elsewhere
		n.told = n.id
	}
	return w, nil
}

// Close forgets the files. A Change of this Watch has no digests afterwards.
func (w *Watch) Close() {
	for _, n := range w.names {
		n.file.Close()
	}
	if w.table != nil {
		w.table.Close()
	}
}

// Change is a name that was replaced, removed, or lost its mount.
type Change struct {
	Path string
	// Exposed: no mount is on the name any more, and the one below it can be written.
	Exposed bool

	was *name
}

// The kernel takes a mount away a moment before the name leads elsewhere.
const (
	halfDoneLooks = 40
	halfDoneTime  = 5 * time.Millisecond
)

// Digests reports the SHA-256, in hex, of the file that the name led to and of the
// one that it leads to now. "": there is none, or it cannot be read, is no regular
// file, or is larger than 64 MB.
func (c Change) Digests() (was, now string) {
	for range halfDoneLooks {
		if c.was.now() != c.was.id {
			break
		}
		<-time.After(halfDoneTime)
	}
	if f, err := os.OpenFile(c.Path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY, 0); err == nil {
		now = digest(f)
		f.Close()
	}
	return digest(c.was.file), now
}

func digest(f *os.File) string {
	fi, err := f.Stat()
	if err != nil || !fi.Mode().IsRegular() || fi.Size() > maxDigest {
		return ""
	}
	h := sha256.New()
	if _, err := io.Copy(h, io.NewSectionReader(f, 0, maxDigest)); err != nil {
		return ""
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Run tells of every change until ctx ends. What happened after its last look is
// for Check to find. mounts opens the mountinfo file that shows the mounts over the
// names; it is called at the first look, a little later, and the Watch closes the
// file, which keeps all these mounts for so long. If mounts is nil or reports nil,
// every change counts as exposed.
//
// Threat: a program inside waits for the moment at which a protected file is a
// plain file again -> the kernel's word about a lost mount arrives at once, through
// the mountinfo file; that of a name that moved away within 50 ms in the first
// second, at once later (inotify), within 250 ms where inotify is not to be had.
// Left over: what the program does until it is ended. It is told, not undone.
func (w *Watch) Run(ctx context.Context, mounts func() *os.File, tell func(Change)) {
	var stop [2]int
	if err := unix.Pipe2(stop[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		return // unreachable: a process without descriptors has started no run
	}
	defer unix.Close(stop[0])
	ended := make(chan struct{})
	release := context.AfterFunc(ctx, func() {
		unix.Close(stop[1])
		close(ended)
	})
	defer func() {
		if release() {
			unix.Close(stop[1])
			return
		}
		<-ended
	}()
	fds := []unix.PollFd{{Fd: int32(stop[0]), Events: unix.POLLIN}, {Fd: -1, Events: unix.POLLPRI}, {Fd: -1, Events: unix.POLLIN}}
	if wait(fds, firstCheck) {
		return
	}
	if mounts != nil {
		w.table = mounts()
	}
	if w.table != nil {
		fds[1].Fd = int32(w.table.Fd())
	}
	began, pause := time.Now(), earlyChecks
	var n *notifier
	for {
		w.check(tell)
		if n == nil && time.Since(began) >= notifyAfter {
			n = newNotifier(w.names)
			defer n.close()
			fds[2].Fd = int32(n.fd)
			pause = blindChecks
			if n.place(w.names) {
				pause = seldomChecks
			}
			continue // what happened meanwhile
		}
		for quiet := true; quiet; {
			if wait(fds, pause) {
				return
			}
			quiet = fds[1].Revents == 0 && fds[2].Revents != 0 && !n.drain()
			if quiet && wait(fds[:1], restTime) { // a program inside may make files all the time
				return
			}
		}
		if n != nil && !n.place(w.names) {
			pause = blindChecks
		}
	}
}

// wait polls and reports whether the Watch is to end.
func wait(fds []unix.PollFd, limit time.Duration) (stop bool) {
	for {
		_, err := unix.Poll(fds, int(limit/time.Millisecond))
		if err == unix.EINTR {
			continue
		}
		return fds[0].Revents != 0
	}
}

// Check tells of every name that leads elsewhere by now.
func (w *Watch) Check(tell func(Change)) {
	for _, n := range w.names {
		if !n.over && n.now() != n.told {
			w.check(tell)
			return
		}
	}
}

// now is what the name leads to.
func (n *name) now() identity {
	var st unix.Stat_t
	if unix.Lstat(n.path, &st) != nil {
		return identity{}
	}
	return identity{uint64(st.Dev), st.Ino} //nolint:unconvert // 32 bits elsewhere
}

// text reads the mountinfo file; "": there is none.
func (w *Watch) text() string {
	if w.table == nil {
		return ""
	}
	if _, err := w.table.Seek(0, io.SeekStart); err != nil {
		return ""
	}
	data, err := io.ReadAll(w.table)
	if err != nil {
		return ""
	}
	return string(data)
}

// check compares every name with what it led to.
func (w *Watch) check(tell func(Change)) {
	data := w.text()
	for _, n := range w.names {
		if n.over {
			continue
		}
		now := n.now()
		point, readOnly := mountinfo.At(data, n.path)
		on := point == n.path
		lost := n.mounted && !on
		n.mounted = on
		if now == n.told && !lost {
			continue
		}
		n.told = now
		n.over = point == "" || !on && !readOnly
		tell(Change{Path: n.path, Exposed: n.over, was: n})
	}
}

package inside

import (
	"errors"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"egressd/internal/linux/inotify"
	"egressd/sandbox/process/control"
)

// maxWatched bounds the covers that are watched.
const maxWatched = 512

// watchAfter is when that begins: to end a watch takes the kernel some 10 ms, which
// a run that is over before should not wait for.
func (in *initProcess) watchAfter() time.Duration {
	if in.skips("delay") {
		return 0
	}
	return time.Second
}

// waitOrder waits for an order, and begins to watch covers when it is time. A
// thread of its own, only to wait, would cost each start half a millisecond.
func (in *initProcess) waitOrder(watch time.Time) {
	for in.unwatched {
		left := max(0, time.Until(watch).Milliseconds())
		n, err := unix.Poll([]unix.PollFd{{Fd: controlFD, Events: unix.POLLIN}}, int(left))
		switch {
		case errors.Is(err, unix.EINTR):
		case n != 0 || err != nil:
			return
		default:
			in.unwatched = false
			go in.watchCovers()
		}
	}
}

// watchCovers tells of covered files and directories that a program opens: it finds
// them empty. A name below a covered directory is looked for, not opened, which
// nobody sees. It returns when nothing can be watched, else with this process.
func (in *initProcess) watchCovers() {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
	if err != nil {
		in.told.tell(control.Refusal{Call: control.CallUnseen, Path: err.Error()})
		return
	}
	paths := map[int]string{}
	for _, p := range in.cfg.Plan.Places {
		if p.Kind != control.PlaceCovered || len(paths) == maxWatched {
			continue
		}
		wd, err := unix.InotifyAddWatch(fd, p.Path, unix.IN_OPEN|unix.IN_DONT_FOLLOW)
		switch {
		case err == nil:
			paths[wd] = p.Path
		case errors.Is(err, unix.ENOSPC):
			in.told.tell(control.Refusal{Call: control.CallUnseen, Path: err.Error()})
		}
	}
	in.tellOpened(fd, paths)
}

// covers reports whether anything is covered.
func (in *initProcess) covers() bool {
	return slices.ContainsFunc(in.cfg.Plan.Places, func(p control.Place) bool { return p.Kind == control.PlaceCovered })
}

// tellOpened tells what is opened for as long as this process lives.
func (in *initProcess) tellOpened(fd int, paths map[int]string) {
	buf := make([]byte, 16<<10)
	for {
		n, err := unix.Read(fd, buf)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return
		}
		for e := range inotify.Events(buf[:n]) {
			if path := paths[e.WD]; path != "" {
				in.told.tell(control.Refusal{Call: control.CallRead, Path: path})
			}
		}
	}
}

package vercel

import (
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"egressd/internal/linux/procstat"
)

// inPipeline reports whether a program of the same pipeline may write into the pipe
// f: a process of this one's group that is none of those it descends from, and none
// that descends from it. The first, such as an editor or an agent that started
// launch, often hold a pipe open that they never write to; the others have a copy of
// every descriptor for the moment between fork and exec. Another process's child may
// be caught in such a moment, too, so a yes is asked again while nothing comes.
func inPipeline(f *os.File) bool {
	pipe, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(int(f.Fd()))) // #nosec: a descriptor
	if err != nil {
		return false
	}
	above := ancestors(os.Getpid())
	procs, err := os.ReadDir("/proc")
	if err != nil {
		return false
	}
	for _, e := range procs {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || above[pid] {
			continue
		}
		if group, err := unix.Getpgid(pid); err == nil && group == unix.Getpgrp() && writes(pid, pipe) && !ancestors(pid)[os.Getpid()] {
			return true
		}
	}
	return false
}

// ancestors are a process and all that it descends from, as far as they can be read.
func ancestors(pid int) map[int]bool {
	above := map[int]bool{}
	for pid > 0 && !above[pid] {
		above[pid] = true
		p, err := procstat.Read(pid)
		if err != nil {
			break
		}
		pid = p.Parent
	}
	return above
}

// writes reports whether a process has that pipe open for writing.
func writes(pid int, pipe string) bool {
	dir := filepath.Join("/proc", strconv.Itoa(pid), "fd")
	fds, err := os.ReadDir(dir)
	if err != nil {
		return false // it has ended, or is another user's
	}
	for _, fd := range fds {
		path := filepath.Join(dir, fd.Name())
		info, err := os.Lstat(path)
		if err != nil || info.Mode().Perm()&0o200 == 0 {
			continue
		}
		if name, err := os.Readlink(path); err == nil && name == pipe {
			return true
		}
	}
	return false
}

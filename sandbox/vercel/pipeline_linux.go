package vercel

import (
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"egressd/internal/linux/procstat"
)

// inPipeline reports whether a program of the same pipeline may write into the pipe
// f: a process of this one's group that is none of those it descends from. Those,
// such as an editor or an agent that started launch, often hold a pipe open that
// they never write to.
func inPipeline(f *os.File) bool {
	pipe, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(int(f.Fd()))) // #nosec: a descriptor
	if err != nil {
		return false
	}
	above := map[int]bool{os.Getpid(): true}
	for p := os.Getppid(); p > 0 && !above[p]; {
		above[p] = true
		up, err := procstat.Read(p)
		if err != nil {
			break
		}
		p = up.Parent
	}
	procs, err := os.ReadDir("/proc")
	if err != nil {
		return false
	}
	for _, e := range procs {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || above[pid] {
			continue
		}
		if group, err := unix.Getpgid(pid); err == nil && group == unix.Getpgrp() && writes(pid, pipe) {
			return true
		}
	}
	return false
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

package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"egressd/test/e2e/job"
)

// victim is the process that Port names: 0 means the parent of the one that
// runs the jobs.
func victim(j job.Job) int {
	if j.Port != 0 {
		return j.Port
	}
	return 1
}

func ptraceAttach(j job.Job) job.Result {
	runtime.LockOSThread()
	pid := victim(j)
	if err := unix.PtraceSeize(pid); err != nil {
		return fail(err)
	}
	return done("traced " + strconv.Itoa(pid))
}

func processVMRead(j job.Job) job.Result {
	buf := make([]byte, 8)
	here := []unix.Iovec{{Base: &buf[0], Len: 8}}
	there := []unix.RemoteIovec{{Base: 0x400000, Len: 8}}
	_, err := unix.ProcessVMReadv(victim(j), here, there, 0)
	if errors.Is(err, unix.EFAULT) {
		return done("may read its memory (nothing mapped there)")
	}
	return outcome(err, "read its memory")
}

func pidfdGetfd(j job.Job) job.Result {
	fd, err := unix.PidfdOpen(victim(j), 0)
	if err != nil {
		return fail(err)
	}
	defer unix.Close(fd)
	for n := range 32 {
		if got, e := unix.PidfdGetfd(fd, n, 0); e == nil {
			_ = unix.Close(got)
			return done("took descriptor " + strconv.Itoa(n))
		} else if !errors.Is(e, unix.EBADF) {
			err = e
		}
	}
	if err == nil {
		err = errors.New("no descriptor to take")
	}
	return fail(err)
}

// procRead reads (a little of) the file at Via.
func procRead(j job.Job) job.Result {
	f, err := os.Open(j.Via)
	if err != nil {
		return fail(err)
	}
	defer f.Close()
	buf := make([]byte, 64<<10)
	n, err := f.Read(buf)
	if err != nil {
		if names, derr := f.Readdirnames(4); derr == nil {
			return done(strings.Join(names, " "))
		}
		return fail(err)
	}
	if j.Token != "" && !strings.Contains(string(buf[:n]), j.Token) {
		return fail(errors.New("readable, but without the secret"))
	}
	return done("read " + strconv.Itoa(n) + " bytes")
}

// procProcesses reports Done when a process whose command line holds Token can be seen.
func procProcesses(j job.Job) job.Result {
	dirs, err := os.ReadDir("/proc")
	if err != nil {
		return fail(err)
	}
	seen := 0
	for _, d := range dirs {
		if _, err := strconv.Atoi(d.Name()); err != nil {
			continue
		}
		seen++
		line, err := os.ReadFile("/proc/" + d.Name() + "/cmdline")
		if err == nil && strings.Contains(string(line), j.Token) {
			return done("pid " + d.Name() + ": " + strings.ReplaceAll(first(line, 200), "\x00", " "))
		}
	}
	return fail(fmt.Errorf("%d processes, none of them the canary", seen))
}

func killPid(j job.Job) job.Result { return outcome(unix.Kill(victim(j), 0), "may signal it") }

// killAll sends SIGKILL to everything that can be seen.
func killAll(job.Job) job.Result { return outcome(unix.Kill(-1, unix.SIGKILL), "killed everything") }

// inheritedFDs lists descriptors beyond stdio that this process did not open.
// The runner's child inherits nothing from the runner itself (close-on-exec),
// so the list is read by the runner's parent through /proc/PPID where it may.
func inheritedFDs(job.Job) job.Result {
	dir := "/proc/" + strconv.Itoa(os.Getppid()) + "/fd"
	names, err := os.ReadDir(dir)
	if err != nil {
		return fail(err)
	}
	r := job.Result{Status: -1}
	for _, n := range names {
		link, err := os.Readlink(dir + "/" + n.Name())
		num, _ := strconv.Atoi(n.Name())
		if err != nil || num <= 2 || strings.HasPrefix(link, "anon_inode:[event") || strings.HasPrefix(link, "anon_inode:[pidfd") ||
			strings.HasPrefix(link, "pipe:") || link == "/dev/null" || strings.Contains(link, "/sys/fs/cgroup") {
			continue
		}
		r.Done = true
		r.Answers = append(r.Answers, n.Name()+" "+link)
	}
	return r
}

// forkMany starts Port processes that sleep, and leaves them behind.
func forkMany(j job.Job) job.Result {
	for i := range j.Port {
		cmd := exec.Command("/proc/self/exe", "linger", j.Token, "")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := cmd.Start(); err != nil {
			return job.Result{Status: i, Err: err.Error()}
		}
	}
	return job.Result{Done: true, Status: j.Port}
}

// survivor leaves a process behind that ignores signals and calls Via for as
// long as it lives.
func survivor(j job.Job) job.Result {
	cmd := exec.Command("/proc/self/exe", "linger", j.Token, j.Via)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return outcome(cmd.Start(), "left behind")
}

// linger is the process left behind: it ends by itself after a while.
func linger(args []string) error {
	if len(args) != 2 {
		return errors.New("linger TOKEN ADDRESS")
	}
	const lifetime, pause = 12 * time.Second, 100 * time.Millisecond
	end := time.NewTimer(lifetime)
	for tick := time.NewTicker(pause); ; {
		select {
		case <-end.C:
			return nil
		case <-tick.C:
			if args[1] == "" {
				continue
			}
			if c, err := net.DialTimeout("tcp", args[1], time.Second); err == nil {
				_, _ = c.Write([]byte(args[0])) // the canary tells
				_ = c.Close()
			}
		}
	}
}

// sysvShm attaches the segment with key Port and reads it.
func sysvShm(j job.Job) job.Result {
	id, _, e := unix.Syscall(unix.SYS_SHMGET, uintptr(j.Port), 0, 0)
	if e != 0 {
		return fail(e)
	}
	return done("segment " + strconv.Itoa(int(id)))
}

// posixMQ opens the message queue named Via.
func posixMQ(j job.Job) job.Result {
	name := append([]byte(j.Via), 0)
	fd, _, e := unix.Syscall6(unix.SYS_MQ_OPEN, uintptr(unsafe.Pointer(&name[0])), unix.O_RDONLY, 0, 0, 0, 0)
	if e != 0 {
		return fail(e)
	}
	return outcome(unix.Close(int(fd)), "queue opened")
}

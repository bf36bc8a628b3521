package hermetic

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"egressd/internal/linux/landlock"
	"egressd/sandbox"
	"egressd/sandbox/hermetic/control"
)

// child is a started worker. Its methods are safe for concurrent use.
type child struct {
	ctl    *control.Conn
	crash  *os.File      // what the Go runtime said in it
	ended  chan struct{} // closed when it is gone
	status syscall.WaitStatus

	mu  sync.Mutex // held while it is killed or reaped
	pid int
}

// spawn says how to start a worker.
type spawn struct {
	stdio  [3]*os.File
	root   string // the workspace
	write  bool   // the worker may change it
	runAs  *sandbox.Cred
	exe    string // "": this program
	walled bool   // confined from its first instruction; false in tests alone
}

// start starts a worker. The caller kills it, waits for it, and closes it.
func (s spawn) start() (*child, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socketpair", err)
	}
	defer unix.Close(pair[1])
	fd, err := unix.MemfdCreate("crash", unix.MFD_CLOEXEC)
	if err != nil {
		unix.Close(pair[0])
		return nil, os.NewSyscallError("memfd_create", err)
	}
	c := &child{ctl: control.LauncherConn(pair[0]), crash: os.NewFile(uintptr(fd), "crash"), ended: make(chan struct{})}
	started := make(chan error, 1)
	go c.parent(s, pair[1], started)
	if err := <-started; err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// parent starts the worker on a thread that is confined before, and waits for
// its end there.
//
// Threat: the launcher is killed and leaves a worker behind -> the kernel kills
// the worker when the thread that forked it ends, which is this one and which is
// kept until then; the worker also ends by itself when the control socket closes.
// Nothing is left over.
//
// Threat: code in the worker runs before Landlock holds for all of its threads,
// or in one that was missed -> the worker is confined when it is executed, as a
// whole. Left over: it may read this program and the libraries it is linked with.
func (c *child) parent(s spawn, ctl int, started chan<- error) {
	runtime.LockOSThread() // and never back: the thread ends with this goroutine
	pid, err := s.fork(ctl, int(c.crash.Fd()))
	if err != nil {
		started <- err
		return
	}
	c.pid = pid
	started <- nil
	c.reap()
}

func (s spawn) fork(ctl, crash int) (int, error) {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return 0, fmt.Errorf("no_new_privs: %w", err)
	}
	exe := s.exe
	if exe == "" {
		exe = "/proc/self/exe"
	}
	attr := &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if s.runAs != nil {
		attr.Credential = &syscall.Credential{Uid: s.runAs.UID, Gid: s.runAs.GID, Groups: s.runAs.Groups}
	} else if err := dropCapabilities(); err != nil {
		return 0, err
	}
	if s.walled {
		if err := s.confine(exe); err != nil {
			return 0, fmt.Errorf("landlock: %w", err)
		}
	}
	return syscall.ForkExec(exe, []string{control.Name}, &syscall.ProcAttr{
		Dir: s.root, Env: []string{}, Sys: attr,
		Files: []uintptr{s.stdio[0].Fd(), s.stdio[1].Fd(), uintptr(crash), uintptr(ctl), s.stdio[2].Fd()},
	})
}

// confine leaves this thread the workspace and what it takes to start the worker.
func (s spawn) confine(exe string) error {
	f := landlock.Files{Execute: append(libraries(), exe)}
	if s.write {
		f.Write = []string{s.root}
	} else {
		f.Read = []string{s.root}
	}
	return landlock.Confine(f)
}

// libraries lists the files that this program is mapped from besides itself: the
// dynamic linker and what it has loaded. A static binary has none.
func libraries() []string {
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return nil // then a dynamic worker does not start
	}
	defer maps.Close()
	var found []string
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		at := strings.IndexByte(lines.Text(), '/')
		if at < 0 {
			continue
		}
		path := lines.Text()[at:]
		if strings.Contains(path, ".so") && !slices.Contains(found, path) && unix.Access(path, unix.R_OK) == nil {
			found = append(found, path)
		}
	}
	return found
}

// dropCapabilities throws away what this thread, and so the worker, may do
// besides being this user. With no_new_privs, executing as uid 0 gives nothing
// back.
func dropCapabilities() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var have, none [2]unix.CapUserData
	if err := unix.Capget(&header, &have[0]); err != nil {
		return fmt.Errorf("capabilities: %w", err)
	}
	if have == none {
		return nil
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("ambient capabilities: %w", err)
	}
	if err := unix.Capset(&header, &none[0]); err != nil {
		return fmt.Errorf("capabilities: %w", err)
	}
	return nil
}

// reap waits for the worker without taking its number away, and takes it away
// under the lock: nobody kills a number that has become somebody else's.
func (c *child) reap() {
	defer close(c.ended)
	for {
		err := unix.Waitid(unix.P_PID, c.pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		if _, err := syscall.Wait4(c.pid, &c.status, 0, nil); !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	c.pid = 0
}

// kill ends the worker at once.
func (c *child) kill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pid > 0 {
		syscall.Kill(c.pid, syscall.SIGKILL) //nolint:errcheck // not yet waited for, so it is ours
	}
}

// wait waits for the worker's end, but no longer than limit.
func (c *child) wait(limit time.Duration) {
	t := time.NewTimer(limit)
	defer t.Stop()
	select {
	case <-c.ended:
	case <-t.C:
	}
}

// close gives up what is left of a worker that has ended, or was never there.
func (c *child) close() {
	c.ctl.Close()
	c.crash.Close()
}

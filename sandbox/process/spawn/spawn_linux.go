package spawn

import (
	"errors"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
)

// Options says how to start an init.
type Options struct {
	Files      [3]uintptr          // its standard input, output and error
	Executable string              // what it executes; "": this program
	RunAs      *syscall.Credential // whom it becomes; nil: the launcher's user
	NoUserNS   bool                // without a user namespace, as root in a container that has none
	Tell       byte                // Wait or Begin
}

// Pending is an init that is being started.
type Pending struct {
	started chan struct{} // closed once child or err is set
	child   *Child
	err     error
	taken   atomic.Bool
}

// Child is a started init. Its methods are safe for concurrent use.
type Child struct {
	Control int  // this side of the control socket, which is the caller's to close
	UserNS  bool // it has a user namespace of its own
	Begun   bool // it was told Begin

	pid   int
	ended chan struct{} // closed when it and everything inside is gone
	mu    sync.Mutex    // held while it is killed or reaped
}

// Ahead starts an init with this process's standard files before anything is
// known about the run. Whoever calls it takes the child or discards it.
//
// It is called while packages are initialised, on the startup thread, which
// lives as long as the process: it need not be kept. Another thread would have
// to be made first, and compete with this one meanwhile.
func Ahead() *Pending {
	p := &Pending{started: make(chan struct{})}
	close(p.started)
	c, err := fork(Options{Files: [3]uintptr{0, 1, 2}, Tell: Begin})
	p.child, p.err = c, err
	if err == nil {
		go c.reap()
	}
	return p
}

// Start starts an init.
func Start(o Options) (*Child, error) {
	p := &Pending{started: make(chan struct{})}
	go p.parent(o)
	return p.Take()
}

// ErrTaken is what everybody but the first gets from Take.
var ErrTaken = errors.New("this init was taken by somebody else")

// Take waits until the init was started, and gives it to the first who asks.
func (p *Pending) Take() (*Child, error) {
	<-p.started
	if p.taken.Swap(true) {
		return nil, ErrTaken
	}
	return p.child, p.err
}

// Discard ends an init that nobody has taken, and waits until it is gone. A nil
// Pending has none.
func (p *Pending) Discard() {
	if p == nil {
		return
	}
	if c, err := p.Take(); err == nil {
		c.Discard()
	}
}

// parent forks the init and waits for its end.
//
// Threat: the launcher is killed and leaves an unwatched harness behind -> the
// kernel kills the init, and with it its whole process namespace, when the
// thread that forked it ends, which is this one, and which is kept until then;
// the init also ends by itself when the control socket closes. Nothing is left
// over.
func (p *Pending) parent(o Options) {
	runtime.LockOSThread() // and never back: the thread ends with this goroutine
	p.child, p.err = fork(o)
	close(p.started)
	if p.err == nil {
		p.child.reap()
	}
}

// reap waits for c without taking its number away, and takes it away under the
// lock: nobody kills a number that has become somebody else's.
func (c *Child) reap() {
	defer close(c.ended)
	const pidType = 1 // P_PID
	for {
		_, _, errno := syscall.Syscall6(syscall.SYS_WAITID, pidType, uintptr(c.pid), 0, syscall.WEXITED|syscall.WNOWAIT, 0, 0)
		if errno != syscall.EINTR {
			break
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		var st syscall.WaitStatus
		if _, err := syscall.Wait4(c.pid, &st, 0, nil); err != syscall.EINTR {
			break
		}
	}
	c.pid = 0
}

// With calls do with the init's process number, which is nobody else's meanwhile.
func (c *Child) With(do func(pid int) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pid == 0 {
		return syscall.ESRCH
	}
	return do(c.pid)
}

// Kill ends the init and everything inside.
func (c *Child) Kill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pid > 0 {
		syscall.Kill(c.pid, syscall.SIGKILL) //nolint:errcheck // not yet waited for, so it is ours
	}
}

// Mounts opens the mountinfo file of the init's namespace. The caller closes it.
func (c *Child) Mounts() (*os.File, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pid <= 0 {
		return nil, os.ErrProcessDone
	}
	return os.Open("/proc/" + strconv.Itoa(c.pid) + "/mountinfo")
}

// Wait waits until the init and everything inside is gone.
func (c *Child) Wait() { <-c.ended }

// Discard kills the init, waits for its end and closes the control socket.
func (c *Child) Discard() {
	c.Kill()
	c.Wait()
	syscall.Close(c.Control)
}

func fork(o Options) (*Child, error) {
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socketpair", err)
	}
	defer syscall.Close(pair[1])
	c := &Child{Control: pair[0], UserNS: !o.NoUserNS, Begun: o.Tell == Begin, ended: make(chan struct{})}
	if c.pid, err = inNamespaces(o, pair[1]); err == nil {
		// A byte into an empty socket never blocks.
		if _, err = syscall.Write(pair[0], []byte{o.Tell}); err == nil {
			return c, nil
		}
		end(c.pid)
	}
	syscall.Close(pair[0])
	return nil, err
}

// end kills a child that came to nothing.
func end(pid int) {
	syscall.Kill(pid, syscall.SIGKILL) //nolint:errcheck // not yet waited for, so it is ours
	for {
		var st syscall.WaitStatus
		if _, err := syscall.Wait4(pid, &st, 0, nil); err != syscall.EINTR {
			return
		}
	}
}

// environment is the init's: nothing of the person's, and no more at a time than
// an init does, whose runtime would make ready for every processor at each start.
func environment() []string { return []string{"GOMAXPROCS=2"} }

// namespaces is what the init gets of its own.
const namespaces = syscall.CLONE_NEWNET | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS

// Capabilities, linux/capability.h.
const (
	capDACOver  = 1
	capSetPCAP  = 8
	capNetBind  = 10
	capNetAdmin = 12
	capSysAdmin = 21
)

func inNamespaces(o Options, control int) (int, error) {
	attr := &syscall.SysProcAttr{
		Cloneflags: namespaces,
		Pdeathsig:  syscall.SIGKILL,
		// A session of its own, so that no "kill 0" reaches in or out.
		//
		// Threat: a process inside opens the person's terminal by /dev/tty, and reads
		// what is typed into the shell outside -> it is the terminal of another session.
		// Nothing is left over.
		Setsid: true,
		// An ordinary user's capabilities do not survive execve unless ambient.
		AmbientCaps: []uintptr{capNetAdmin, capSysAdmin, capNetBind, capSetPCAP},
		Credential:  o.RunAs,
	}
	if o.NoUserNS {
		return execute(o, attr, control)
	}
	attr.Cloneflags |= syscall.CLONE_NEWUSER
	// For an overlay alone: the init lowers it at once, see package inside.
	attr.AmbientCaps = append(attr.AmbientCaps, capDACOver)
	m, err := ownIDs()
	if err != nil {
		return 0, err
	}
	if o.RunAs != nil {
		// Becoming another user needs the maps first, so Go writes them between
		// fork and execve, which costs a copy of this process.
		attr.UidMappings, attr.GidMappings, attr.GidMappingsEnableSetgroups = m.uid, m.gid, m.setgroups
		return execute(o, attr, control)
	}
	// Go would copy this process's memory tables for a child with a user
	// namespace, for the sake of maps that are written before execve.
	attr.Cloneflags |= syscall.CLONE_VFORK | syscall.CLONE_VM
	pid, err := execute(o, attr, control)
	if err != nil {
		return 0, err
	}
	// The init waits to be told before it looks at anything, so the maps can be
	// written while it starts.
	if err := m.write(pid); err != nil {
		end(pid)
		return 0, err
	}
	return pid, nil
}

func execute(o Options, attr *syscall.SysProcAttr, control int) (int, error) {
	path := o.Executable
	if path == "" {
		path = "/proc/self/exe"
	}
	return syscall.ForkExec(path, []string{Name}, &syscall.ProcAttr{
		Dir: "/", Env: environment(), Files: []uintptr{o.Files[0], o.Files[1], o.Files[2], uintptr(control)}, Sys: attr,
	})
}

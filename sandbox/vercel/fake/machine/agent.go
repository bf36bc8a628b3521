package machine

import (
	"errors"
	"io/fs"
	"os"
	"os/signal"
	"path"
	"slices"
	"sync"
	"syscall"

	"egressd/internal/linux/lookpath"
	"egressd/internal/linux/pty"
)

// agentArgs are what the agent is executed with. The first keeps a test binary
// whose TestMain does not call Agent from running its tests in there.
var agentArgs = []string{"-test.run=^$", "sandbox-agent-of-the-double"}

// defaultPath is where the agent itself looks for programs.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Agent serves as the agent of a machine when args, which are the program's
// (os.Args), say that this process is one. done means that it was, and has
// ended: the program exits then.
func Agent(args []string) (done bool) {
	if len(args) == 0 || !slices.Equal(args[1:], agentArgs) || os.Getpid() == 1 {
		return false
	}
	c, err := newConn(os.Stdin)
	if err != nil {
		return true // started by hand
	}
	// Signals of the launcher's come to everybody inside. They are caught and not
	// ignored, since programs inherit what is ignored.
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2)
	syscall.Umask(0o022)
	a := &agent{c: c, running: map[uint64]*os.Process{}}
	a.serve()
	return true
}

// agent obeys the machine's owner.
type agent struct {
	c  *conn
	mu sync.Mutex

	running map[uint64]*os.Process
}

// serve ends when the owner is gone; the kernel kills everything inside then.
func (a *agent) serve() {
	if a.c.send(reply{}) != nil {
		return
	}
	for {
		var r request
		files, err := a.c.receive(&r)
		if err != nil {
			return
		}
		switch r.Op {
		case opExec:
			a.exec(r, files)
		case opSignal:
			a.signal(r)
		case opOpen:
			a.open(r)
		case opMkdir:
			a.answer(r, mkdir(resolve(r.Dir, r.Path), r.Recursive))
		case opDial:
			go a.dial(r)
		case opExtract:
			if len(files) == 1 {
				go a.extract(r, files[0])
				continue
			}
			fallthrough
		default:
			a.answer(r, &Error{Kind: BadFile, Text: "no such order: " + r.Op})
		}
		closeAll(files)
	}
}

func (a *agent) answer(r request, err error, files ...*os.File) {
	_ = a.c.send(reply{ID: r.ID, Err: asError(err)}, files...) // the owner is gone: serve sees it, too
}

// asError puts what went wrong into words that travel.
func asError(err error) *Error {
	var e *Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &e):
		return e
	case errors.Is(err, fs.ErrNotExist):
		return &Error{Kind: NotFound, Text: err.Error()}
	}
	return &Error{Kind: BadFile, Text: err.Error()}
}

func resolve(dir, name string) string {
	if path.IsAbs(name) {
		return path.Clean(name)
	}
	return path.Join("/", dir, name)
}

func (a *agent) exec(r request, files []*os.File) {
	if want := map[bool]int{false: 2}[r.Terminal != nil]; len(files) != want || len(r.Argv) == 0 {
		a.answer(r, &Error{Kind: BadFile, Text: "an order without its files"})
		return
	}
	var master []*os.File // of the program's terminal
	if r.Terminal != nil {
		m, s, err := pty.Open()
		if err != nil {
			a.answer(r, err)
			return
		}
		defer closeAll([]*os.File{m, s})
		if err := errors.Join(pty.SetSize(m, *r.Terminal), pty.Blocking(s)); err != nil {
			a.answer(r, err)
			return
		}
		master, files = []*os.File{m}, []*os.File{s, s}
	}
	p, err := start(r, files)
	if err != nil {
		a.answer(r, err)
		return
	}
	a.mu.Lock()
	a.running[r.ID] = p
	a.mu.Unlock()
	a.answer(r, nil, master...)
	go a.wait(r.ID, p)
}

func (a *agent) wait(id uint64, p *os.Process) {
	st, err := p.Wait()
	a.mu.Lock()
	delete(a.running, id)
	a.mu.Unlock()
	e := Exit{Code: 128 + int(syscall.SIGKILL)}
	if err == nil {
		e = Exit{Code: st.ExitCode(), CPUms: (st.UserTime() + st.SystemTime()).Milliseconds()}
		if ws, ok := st.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
			e.Code = 128 + int(ws.Signal())
		}
	}
	_ = a.c.send(reply{ID: id, Exited: &e}) // as in answer
}

func (a *agent) signal(r request) {
	a.mu.Lock()
	p := a.running[r.Target]
	a.mu.Unlock()
	if p != nil {
		if r.Group {
			_ = syscall.Kill(-p.Pid, r.Signal) // it leads a group; gone is fine
		} else {
			_ = p.Signal(r.Signal)
		}
	}
	a.answer(r, nil)
}

// start executes a program.
func start(r request, files []*os.File) (*os.Process, error) {
	if err := enterable(r.Dir); err != nil {
		return nil, err
	}
	prog, err := lookpath.Find(r.Argv[0], r.Dir, envValue(r.Env, "PATH"))
	if err != nil {
		if lookpath.ExitCode(err) == 126 {
			return nil, &Error{Kind: NotExecutable, Text: err.Error()}
		}
		return nil, &Error{Kind: NoProgram, Text: err.Error()}
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	attr := &os.ProcAttr{Dir: r.Dir, Env: r.Env, Files: []*os.File{null, files[0], files[1]}}
	if r.Terminal != nil {
		attr.Files[0] = files[0]
	}
	try := func(sys *syscall.SysProcAttr) (*os.Process, error) {
		if attr.Sys = sys; r.Terminal != nil {
			onTerminal(sys)
		}
		return os.StartProcess(prog, r.Argv, attr)
	}
	var p *os.Process
	other := r.Other
	if r.Root {
		other = new(Identity)
	}
	if other != nil {
		p, err = try(identityAttr(*other))
	}
	if other == nil || err != nil {
		p, err = try(&syscall.SysProcAttr{Setsid: true})
	}
	if err != nil {
		return nil, &Error{Kind: NotExecutable, Text: err.Error()}
	}
	return p, nil
}

// enterable reports why dir cannot be a working directory.
func enterable(dir string) error {
	fi, err := os.Stat(dir)
	if err == nil && !fi.IsDir() {
		err = &fs.PathError{Op: "chdir", Path: dir, Err: syscall.ENOTDIR}
	}
	if err != nil {
		return &Error{Kind: BadDirectory, Text: err.Error()}
	}
	return nil
}

func envValue(env []string, name string) string {
	for i := len(env) - 1; i >= 0; i-- {
		if len(env[i]) > len(name) && env[i][:len(name)] == name && env[i][len(name)] == '=' {
			return env[i][len(name)+1:]
		}
	}
	return ""
}

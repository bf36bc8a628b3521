package process

import (
	"errors"
	"fmt"

	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Exit codes of programs that were not run, as in a shell.
const (
	exitNotExecutable = 126
	exitNotFound      = 127
	exitSignal        = 128 // plus the signal
)

// childState is what wait4 reports about one process.
type childState struct {
	pid    int
	status syscall.WaitStatus
}

// run starts the harness and serves it until it ends or the supervisor goes.
func (in *initProcess) run() int {
	pid, err := in.startHarness()
	if err != nil {
		code := exitCodeOf(err)
		fmt.Fprintf(os.Stderr, "launch: %v\n", err)
		in.ctl.send(message{Exited: &exitReport{Code: code, NotRun: true}}) //nolint:errcheck // gone
		return 0
	}
	states := make(chan childState)
	orders := make(chan message)
	go in.reap(states)
	go in.listen(orders)
	return in.serve(pid, states, orders)
}

func (in *initProcess) serve(pid int, states <-chan childState, orders <-chan message) int {
	group := pid // that holds the terminal while the harness is stopped
	for {
		select {
		case st := <-states:
			switch {
			case st.pid != pid:
			case st.status.Stopped():
				if g := in.foreground(); g > 0 {
					group = g
				}
				if in.ctl.send(message{Stopped: &stopReport{Sig: st.status.StopSignal()}}) != nil {
					return initCrashed
				}
			case st.status.Exited(), st.status.Signaled():
				if in.ctl.send(message{Exited: exited(st.status)}) != nil {
					return initCrashed
				}
				return 0
			}
		case m, ok := <-orders:
			if !ok {
				return initCrashed // the supervisor is gone: so is everything here
			}
			in.obey(m, pid, group)
		}
	}
}

func exited(st syscall.WaitStatus) *exitReport {
	if st.Signaled() {
		return &exitReport{Code: exitSignal + int(st.Signal()), Signal: st.Signal()}
	}
	return &exitReport{Code: st.ExitStatus()}
}

// reap waits for every process inside; orphans end up with pid 1.
func (in *initProcess) reap(states chan<- childState) {
	for {
		var st syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &st, syscall.WUNTRACED, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return // no child is left, and so no harness
		default:
			states <- childState{pid, st}
		}
	}
}

// listen passes the supervisor's orders on; it closes the channel when the
// supervisor is gone.
func (in *initProcess) listen(orders chan<- message) {
	defer close(orders)
	for {
		m, fds, err := in.ctl.receive()
		closeAll(fds)
		if err != nil {
			return
		}
		orders <- m
	}
}

func (in *initProcess) obey(m message, pid, group int) {
	switch {
	case m.Signal != nil && m.Signal.All:
		syscall.Kill(-1, m.Signal.Sig)    //nolint:errcheck // nobody left is fine
		syscall.Kill(-1, syscall.SIGCONT) //nolint:errcheck // the stopped must hear it too
	case m.Signal != nil:
		// The harness leads its process group, as a shell's job does.
		if syscall.Kill(-pid, m.Signal.Sig) != nil {
			syscall.Kill(pid, m.Signal.Sig) //nolint:errcheck // it has just ended
		}
	case m.Resume != nil:
		if m.Resume.Foreground && in.tty != nil {
			setForeground(int(in.tty.Fd()), group)
		}
		syscall.Kill(-pid, syscall.SIGCONT) //nolint:errcheck // it has just ended
		if group != pid {
			syscall.Kill(-group, syscall.SIGCONT) //nolint:errcheck // may be gone
		}
	case m.Dial != nil:
		go in.dial(*m.Dial)
	}
}

// startHarness executes the harness in a process group of its own.
func (in *initProcess) startHarness() (int, error) {
	if err := os.Chdir(in.cfg.Dir); err != nil {
		return 0, fmt.Errorf("working directory: %w", err)
	}
	path, err := lookPath(in.cfg.Argv[0], in.cfg.Dir, in.cfg.Path)
	if err != nil {
		return 0, err
	}
	attr := &syscall.ProcAttr{Env: in.env, Files: []uintptr{0, 1, 2}, Sys: &syscall.SysProcAttr{Setpgid: true}}
	if in.cfg.Foreground && in.tty != nil {
		attr.Sys.Foreground, attr.Sys.Ctty = true, int(in.tty.Fd())
	}
	pid, err := syscall.ForkExec(path, in.cfg.Argv, attr)
	if errors.Is(err, syscall.ENOEXEC) {
		// A script without "#!": run it as every shell does.
		argv := append([]string{"sh", path}, in.cfg.Argv[1:]...)
		pid, err = syscall.ForkExec("/bin/sh", argv, attr)
	}
	if err != nil {
		return 0, &fs.PathError{Op: "exec", Path: in.cfg.Argv[0], Err: err}
	}
	return pid, nil
}

// notFoundError is a shell's "command not found".
type notFoundError struct{ name string }

func (e *notFoundError) Error() string { return e.name + ": command not found" }
func (e *notFoundError) Unwrap() error { return fs.ErrNotExist }

// lookPath finds the file of program name as a shell does: a name with a slash
// is a path, another one is looked for in list (PATH). Relative paths start at
// dir.
func lookPath(name, dir, list string) (string, error) {
	if strings.Contains(name, "/") {
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		return name, executable(name)
	}
	var found error
	for _, d := range filepath.SplitList(list) {
		if !filepath.IsAbs(d) {
			d = filepath.Join(dir, d)
		}
		path := filepath.Join(d, name)
		err := executable(path)
		if err == nil {
			return path, nil
		}
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
			found = err
		}
	}
	if found != nil {
		return "", found
	}
	return "", &notFoundError{name}
}

// executable reports why path cannot be executed; nil: it can.
func executable(path string) error {
	fi, err := os.Stat(path)
	if err != nil {
		return err
	}
	if fi.IsDir() {
		return &fs.PathError{Op: "exec", Path: path, Err: syscall.EISDIR}
	}
	if err := unix.Faccessat(unix.AT_FDCWD, path, unix.X_OK, unix.AT_EACCESS); err != nil {
		return &fs.PathError{Op: "exec", Path: path, Err: err}
	}
	return nil
}

func exitCodeOf(err error) int {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return exitNotFound
	}
	return exitNotExecutable
}

// dial connects to a server inside and passes the connection to the
// supervisor.
func (in *initProcess) dial(o dialOrder) {
	f, err := dialLoopback(o.Port)
	out := dialOutcome{ID: o.ID}
	if err != nil {
		out.Err = err.Error()
		in.ctl.send(message{Dialled: &out}) //nolint:errcheck // gone
		return
	}
	defer f.Close()
	in.ctl.send(message{Dialled: &out}, int(f.Fd())) //nolint:errcheck // gone
}

// dialLoopback connects to port on 127.0.0.1, else on ::1. Loopback answers at
// once; no deadline is needed.
func dialLoopback(port uint16) (*os.File, error) {
	var errs []error
	for _, to := range []struct {
		family int
		addr   unix.Sockaddr
	}{
		{unix.AF_INET, &unix.SockaddrInet4{Port: int(port), Addr: [4]byte{127, 0, 0, 1}}},
		{unix.AF_INET6, &unix.SockaddrInet6{Port: int(port), Addr: [16]byte{15: 1}}},
	} {
		fd, err := unix.Socket(to.family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err == nil {
			if err = unix.Connect(fd, to.addr); err == nil {
				return os.NewFile(uintptr(fd), "published"), nil
			}
			unix.Close(fd)
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

package inside

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"egressd/internal/foreground"
	"egressd/internal/lookpath"
	"egressd/sandbox/process/control"
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
		code := lookpath.ExitCode(err)
		fmt.Fprintf(os.Stderr, "launch: %v\n", err)
		in.ctl.Send(control.Message{Exited: &control.ExitReport{Code: code, NotRun: true}}) //nolint:errcheck // gone
		return 0
	}
	states := make(chan childState)
	orders := make(chan control.Message)
	go in.reap(states)
	go in.listen(orders)
	return in.serve(pid, states, orders)
}

func (in *initProcess) serve(pid int, states <-chan childState, orders <-chan control.Message) int {
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
				if in.ctl.Send(control.Message{Stopped: &control.StopReport{Sig: st.status.StopSignal()}}) != nil {
					return initCrashed
				}
			case st.status.Exited(), st.status.Signaled():
				if in.ctl.Send(control.Message{Exited: exited(st.status)}) != nil {
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

func exited(st syscall.WaitStatus) *control.ExitReport {
	if st.Signaled() {
		return &control.ExitReport{Code: 128 + int(st.Signal()), Signal: st.Signal()}
	}
	return &control.ExitReport{Code: st.ExitStatus()}
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
func (in *initProcess) listen(orders chan<- control.Message) {
	defer close(orders)
	for {
		m, fds, err := in.ctl.Receive()
		control.CloseAll(fds)
		if err != nil {
			return
		}
		orders <- m
	}
}

// foreground reports the process group that holds the terminal, as numbered
// inside; 0 when it is outside or there is no terminal.
func (in *initProcess) foreground() int {
	if in.tty == nil {
		return 0
	}
	return foreground.Of(in.tty)
}

func (in *initProcess) obey(m control.Message, pid, group int) {
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
			foreground.Set(in.tty, group)
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
	path, err := lookpath.Find(in.cfg.Argv[0], in.cfg.Dir, in.cfg.Path)
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

// dial connects to a server inside and passes the connection to the
// supervisor.
func (in *initProcess) dial(o control.DialOrder) {
	f, err := dialLoopback(o.Port)
	out := control.DialOutcome{ID: o.ID}
	if err != nil {
		out.Err = err.Error()
		in.ctl.Send(control.Message{Dialled: &out}) //nolint:errcheck // gone
		return
	}
	defer f.Close()
	in.ctl.Send(control.Message{Dialled: &out}, int(f.Fd())) //nolint:errcheck // gone
}

// dialLimit is how long a connection may wait for a server inside that accepts
// none: each one that waits holds a thread of this process.
const dialLimit = 10 * time.Second

// dialLoopback connects to port on 127.0.0.1, else on ::1.
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
			limit, none := unix.NsecToTimeval(dialLimit.Nanoseconds()), unix.Timeval{}
			if err = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &limit); err == nil {
				err = unix.Connect(fd, to.addr)
			}
			if err == nil {
				err = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &none)
			}
			if err == nil {
				return os.NewFile(uintptr(fd), "published"), nil
			}
			unix.Close(fd)
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

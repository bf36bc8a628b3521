package inside

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"egressd/internal/linux/foreground"
	"egressd/internal/linux/ipc"
	"egressd/internal/linux/lookpath"
	"egressd/sandbox/process/control"
)

// program is the process that this sandbox is for.
type program struct {
	pid   int
	group atomic.Int64 // that is to hold the terminal when the program goes on
}

// run starts the program and serves it until it ends or the supervisor is gone.
// Somebody waits for that end, so this thread waits for it itself.
func (in *initProcess) run() int {
	p, err := in.startProgram()
	if err != nil {
		code := lookpath.ExitCode(err)
		fmt.Fprintf(os.Stderr, "launch: %v\n", err)
		in.ctl.Send(control.Message{Exited: &control.ExitReport{Code: code, NotRun: true}}) //nolint:errcheck // gone
		return 0
	}
	go in.listen(p)
	return in.wait(p)
}

// wait waits for every process inside (orphans end up with pid 1) and reports
// what happens to the program, until it ends.
func (in *initProcess) wait(p *program) int {
	for {
		var st syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &st, syscall.WUNTRACED, nil)
		var report control.Message
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case err != nil:
			return initCrashed // no child is left, and so no program
		case pid != p.pid:
			continue
		case st.Stopped():
			if g := in.foreground(); g > 1 { // 1 is the init itself: the program was in the background
				p.group.Store(int64(g))
			}
			if report.Stopped = in.stopReport(pid, st.StopSignal()); report.Stopped == nil {
				continue
			}
		default:
			report.Exited = exited(st)
		}
		if in.ctl.Send(report) != nil {
			return initCrashed
		}
		if report.Exited != nil {
			return 0
		}
	}
}

func exited(st syscall.WaitStatus) *control.ExitReport {
	if st.Signaled() {
		return &control.ExitReport{Code: 128 + int(st.Signal()), Signal: st.Signal()}
	}
	return &control.ExitReport{Code: st.ExitStatus()}
}

// listen obeys the supervisor's orders. When the supervisor is gone, it ends
// everything here: the program's end wakes wait, whose report fails.
func (in *initProcess) listen(p *program) {
	for watch := time.Now().Add(in.watchAfter()); ; {
		in.waitOrder(watch)
		m, fds, err := in.ctl.Receive()
		ipc.CloseAll(fds)
		if err != nil {
			syscall.Kill(-1, syscall.SIGKILL) //nolint:errcheck // there may be none
			return
		}
		in.obey(m, p)
	}
}

// foreground reports the process group that holds the terminal, as numbered
// inside; 0 when it is outside or there is no terminal.
func (in *initProcess) foreground() int {
	if in.tty == nil {
		return 0
	}
	return foreground.Of(int(in.tty.Fd()))
}

func (in *initProcess) obey(m control.Message, p *program) {
	switch {
	case m.Signal != nil && m.Signal.All:
		syscall.Kill(-1, m.Signal.Sig)    //nolint:errcheck // there may be none
		syscall.Kill(-1, syscall.SIGCONT) //nolint:errcheck // the stopped must hear it too
	case m.Signal != nil:
		// The program leads its process group, as a shell's job does.
		if syscall.Kill(-p.pid, m.Signal.Sig) != nil {
			syscall.Kill(p.pid, m.Signal.Sig) //nolint:errcheck // it has just ended
		}
	case m.Resume != nil:
		group := int(p.group.Load())
		if in.tty != nil && m.Resume.Foreground {
			foreground.Set(int(in.tty.Fd()), group)
		} else if in.tty != nil {
			foreground.Set(int(in.tty.Fd()), os.Getpid())
		}
		syscall.Kill(-p.pid, syscall.SIGCONT) //nolint:errcheck // it has just ended
		if group != p.pid {
			syscall.Kill(-group, syscall.SIGCONT) //nolint:errcheck // may be gone
		}
	case m.Hold != nil:
		in.hold(m.Hold.On, p)
		if m.Hold.On {
			in.ctl.Send(control.Message{Held: &control.HeldReport{}}) //nolint:errcheck // gone
		}
	case m.Dial != nil:
		go in.dial(*m.Dial)
	}
}

// startProgram executes the program in a process group of its own.
func (in *initProcess) startProgram() (*program, error) {
	if err := os.Chdir(in.cfg.Dir); err != nil {
		return nil, fmt.Errorf("working directory: %w", err)
	}
	path, err := lookpath.Find(in.cfg.Argv[0], in.cfg.Dir, in.cfg.Path)
	if err != nil {
		return nil, err
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
		return nil, &fs.PathError{Op: "exec", Path: in.cfg.Argv[0], Err: err}
	}
	p := &program{pid: pid}
	p.group.Store(int64(pid))
	return p, nil
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

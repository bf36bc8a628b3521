//go:build unix

package advisory

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"golang.org/x/term"

	"egressd/internal/linux/lookpath"
	"egressd/sandbox"
)

// runProgram runs spec with nothing around it. On a terminal the program shares
// the launcher's process group, so the terminal's keys reach it; elsewhere it
// leads a group of its own, which is ended as a whole.
func runProgram(ctx context.Context, spec sandbox.Spec, res *sandbox.Result) error {
	argv, err := spec.CommandLine()
	if err != nil {
		return err
	}
	dir, err := spec.WorkingDirectory(nil)
	if err != nil {
		return err
	}
	stdio, closeNull, err := spec.StandardFiles()
	if err != nil {
		return err
	}
	defer closeNull()
	path, err := lookpath.Find(argv[0], dir, sandbox.EnvValue(spec.Env, "PATH"))
	if err != nil {
		res.ExitCode = lookpath.ExitCode(err)
		fmt.Fprintf(stdio[2], "launch: %v\n", err)
		return nil
	}
	terminal := onTerminal(stdio)
	cmd := &exec.Cmd{
		Path: path, Args: argv, Env: spec.Env, Dir: dir, Stdin: stdio[0], Stdout: stdio[1], Stderr: stdio[2],
		SysProcAttr: &syscall.SysProcAttr{Setpgid: !terminal},
	}
	signals := make(chan os.Signal, 16)
	for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2} {
		if !signal.Ignored(s) {
			signal.Notify(signals, s)
		}
	}
	defer signal.Stop(signals)
	if spec.Forwarding != nil {
		spec.Forwarding()
	}
	if err := cmd.Start(); err != nil {
		res.ExitCode = lookpath.ExitCode(err)
		fmt.Fprintf(stdio[2], "launch: %v\n", err)
		return nil
	}
	p := &program{cmd: cmd, group: !terminal, signals: signals, done: make(chan error, 1)}
	go p.wait()
	p.watch(ctx, spec, res)
	return nil
}

// program is a program that was started.
type program struct {
	cmd     *exec.Cmd
	group   bool // it leads a process group of its own
	signals <-chan os.Signal
	done    chan error
}

func (p *program) wait() { p.done <- p.cmd.Wait() }

func (p *program) send(sig syscall.Signal) {
	pid := p.cmd.Process.Pid
	if p.group {
		pid = -pid
	}
	syscall.Kill(pid, sig) //nolint:errcheck // it has just ended
}

// watch waits until the program ends, and ends it when time is up.
func (p *program) watch(ctx context.Context, spec sandbox.Spec, res *sandbox.Result) {
	var deadline, kill <-chan time.Time
	if spec.Timeout > 0 {
		deadline = time.After(spec.Timeout)
	}
	stop := ctx.Done()
	for {
		select {
		case err := <-p.done:
			if p.group {
				p.send(syscall.SIGKILL) // what it left behind
			}
			if !res.TimedOut {
				res.ExitCode = exitCode(err)
			}
			return
		case s := <-p.signals:
			sig := s.(syscall.Signal)
			if p.group || sig != syscall.SIGINT && sig != syscall.SIGQUIT { // the terminal has sent it already
				p.send(sig)
			}
		case <-deadline:
			res.TimedOut, res.ExitCode = true, sandbox.ExitTimeout
			p.send(syscall.SIGTERM)
			kill = time.After(spec.GracePeriod())
		case <-stop:
			stop = nil
			p.send(syscall.SIGTERM)
			kill = time.After(spec.GracePeriod())
		case <-kill:
			p.send(syscall.SIGKILL)
		}
	}
}

// exitCode reports the exit code that an error of Wait stands for.
func exitCode(err error) int {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case !errors.As(err, &exit):
		return sandbox.ExitLauncher
	}
	if st, ok := exit.Sys().(syscall.WaitStatus); ok && st.Signaled() {
		return sandbox.ExitSignal + int(st.Signal())
	}
	return exit.ExitCode()
}

// onTerminal reports whether one of files is a terminal.
func onTerminal(files [3]*os.File) bool {
	return slices.ContainsFunc(files[:], func(f *os.File) bool { return term.IsTerminal(int(f.Fd())) })
}

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"egressd/internal/run/records"
)

// exec runs a program in a sandbox again: launch with the flags that it was
// made with.
func (c *boxCall) exec() error {
	b, err := c.box()
	if err != nil {
		return err
	}
	if c.opts.detach {
		return c.detach()
	}
	return c.again(b, keeping{mode: "foreground"})
}

// background is the first argument of a launch that runs in the background: it
// has descriptor 3 to say what its process is called, or why there is none.
const background = "--background"

// inBackground is the other half of detach.
func (l *launcher) inBackground(args []string) int {
	out := os.NewFile(3, "announcement")
	if out == nil {
		return exitLauncher
	}
	syscall.CloseOnExec(3)
	program := *l.Program
	program.Stderr = out
	inner := &launcher{&program}
	call := &boxCall{launcher: inner, operands: args}
	var err error
	if call.store, err = inner.store(); err != nil {
		return inner.Fail(exitLauncher, err)
	}
	defer call.store.Close()
	for len(call.operands) > 1 && strings.HasPrefix(call.operands[0], "--") {
		name, value, _ := strings.Cut(call.operands[0], "=")
		switch call.operands = call.operands[1:]; name {
		case "--env":
			call.opts.env = append(call.opts.env, value)
		case "--workdir":
			call.opts.workdir = value
		case "--timeout":
			call.opts.timeout = value
		}
	}
	b, err := call.box()
	if err == nil {
		err = call.again(b, keeping{mode: "background", announce: out})
	}
	if err != nil {
		return inner.Fail(exitLauncher, err)
	}
	return call.code
}

// again runs the program of the operands behind the sandbox's own flags.
func (c *boxCall) again(b records.Sandbox, k keeping) error {
	if err := os.Chdir(b.Workspace); err != nil {
		return fmt.Errorf("the workspace of sandbox %s: %w", b.Name, err)
	}
	s := &session{launcher: c.launcher}
	fs := s.opts.flags()
	fs.SetOutput(io.Discard)
	var args []string
	for _, f := range b.Flags {
		if !slices.ContainsFunc(c.opts.env, func(v string) bool { return sameVariable(f, v) }) {
			args = append(args, f)
		}
	}
	args = append(args, c.opts.ofRun()...)
	if k.announce != nil {
		args = append(args, "--quiet")
	}
	if err := fs.Parse(args); err != nil {
		return fmt.Errorf("the flags of sandbox %s: %w", b.Name, err)
	}
	if there := b.Remote.Project; there != "" {
		s.opts.hosted.project, s.opts.hosted.team = there, b.Remote.Team
	}
	s.opts.argv = c.operands[1:]
	s.opts.keeping = k
	s.opts.keeping.name, s.opts.keeping.raw = b.Name, b.Flags
	if err := s.opts.validate(); err != nil {
		return fmt.Errorf("the flags of sandbox %s: %w", b.Name, err)
	}
	c.code = s.run()
	return nil
}

// ofRun spells the options that exec hands on to launch.
func (o *boxOptions) ofRun() []string {
	var args []string
	for _, v := range o.env {
		args = append(args, "--env="+v)
	}
	if o.workdir != "" {
		args = append(args, "--workdir="+o.workdir)
	}
	if o.timeout != "" {
		args = append(args, "--timeout="+o.timeout)
	}
	return args
}

// sameVariable reports whether flag passes the variable on that v, NAME or
// NAME=VALUE, is about.
func sameVariable(flag, v string) bool {
	name, ok := strings.CutPrefix(flag, "--env=")
	other, _, _ := strings.Cut(v, "=")
	return ok && name == other
}

// detach starts this program once more, away from the terminal, and waits until
// it says what its process is called.
func (c *boxCall) detach() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	args := append([]string{os.Args[0], "sandbox", background}, c.opts.ofRun()...)
	child, err := os.StartProcess(self, append(args, c.operands...), &os.ProcAttr{
		Env: c.Environ, Files: []*os.File{null, null, null, w}, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	w.Close()
	if err != nil {
		return fmt.Errorf("start in the background: %w", err)
	}
	said, err := io.ReadAll(io.LimitReader(r, 64<<10))
	if err != nil {
		return err
	}
	id, ok := strings.CutSuffix(string(said), "\n")
	if !ok || records.ValidName(id) != "" {
		_, _ = child.Wait()
		return errors.New(strings.TrimPrefix(strings.TrimSpace(string(said)), "launch: "))
	}
	c.Print(id + "\n")
	return child.Release()
}

// kill ends one process.
func (c *boxCall) kill() error {
	p, err := c.process()
	if err != nil || p.Over() {
		return err
	}
	if p.Metadata.Remote != (records.RemoteCommand{}) {
		return c.killRemote(p)
	}
	return c.end([]records.Process{p})
}

// stop ends all that runs in a sandbox.
func (c *boxCall) stop() error {
	b, err := c.box()
	if err != nil {
		return err
	}
	if b.Tier == tierVercel {
		return c.stopHosted(b)
	}
	all, err := c.store.Processes(c.operands[0])
	if err != nil {
		return err
	}
	var running []records.Process
	for _, p := range all {
		if !p.Over() {
			running = append(running, p)
		}
	}
	if err := c.end(running); err != nil {
		return err
	}
	return c.store.Update(c.operands[0], func(b *records.Sandbox) { b.Status = records.Stopped })
}

// remove forgets a sandbox.
func (c *boxCall) remove() error {
	if c.opts.force {
		if err := c.stop(); err != nil {
			return err
		}
	}
	b, err := c.box()
	if err != nil {
		return err
	}
	if b.Tier == tierVercel {
		if err := c.deleteHosted(b); err != nil {
			return err
		}
	}
	return c.store.Remove(c.operands[0])
}

// killGrace is how long a process has to end when it is asked to.
const killGrace = 10 * time.Second

// end asks the launchers of processes to end them, and makes them when they do
// not: the first signal is the program's, the second ends everything, and what
// a launcher that is killed leaves behind the kernel kills.
func (c *boxCall) end(running []records.Process) error {
	ctx, stop := interrupted()
	defer stop()
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGTERM, syscall.SIGKILL} {
		for _, p := range running {
			if err := c.signal(p, sig); err != nil {
				return err
			}
		}
		var left []records.Process
		deadline := time.Now().Add(killGrace)
		for _, p := range running {
			if _, err := c.store.Wait(ctx, p.Sandbox, p.ID, max(time.Until(deadline), time.Millisecond)); err != nil {
				left = append(left, p)
			}
		}
		if running = left; len(running) == 0 || ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return fmt.Errorf("process %s does not end", running[0].ID)
}

func (c *boxCall) signal(p records.Process, sig syscall.Signal) error {
	now, err := c.store.MarkStopping(p.Sandbox, p.ID)
	if err != nil || now.Over() {
		return err
	}
	pid := now.Metadata.Launcher
	if pid <= 1 {
		return fmt.Errorf("process %s does not say whose it is", p.ID)
	}
	launcher, err := os.FindProcess(pid)
	if err != nil {
		return nil
	}
	if err := launcher.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("process %s: %w", p.ID, err)
	}
	return nil
}

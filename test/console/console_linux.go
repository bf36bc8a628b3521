// Package console is a person at a terminal, for tests:
//
//	c := console.Start(t, console.Options{}, "/bin/sh", "-c", "tty; read x")
//	c.Expect("/dev/pts/")
//	c.Send("hello\n")
//	code := c.Exit()
package console

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Keys.
const (
	CtrlC         = "\x03"
	CtrlD         = "\x04"
	CtrlQ         = "\x11"
	CtrlS         = "\x13"
	CtrlZ         = "\x1a"
	CtrlBackslash = "\x1c"
)

// wait is how long Expect waits.
const wait = 20 * time.Second

// Options say how to start.
type Options struct {
	Env []string // nil: a small one, with HOME=/nonexistent
	Dir string   // "": /
}

// Console is a terminal with a program on the other side. For one goroutine.
type Console struct {
	Cmd *exec.Cmd // the program; its exit is Exit's to wait for

	t      *testing.T
	master *os.File
	name   string
	output chan []byte
	seen   bytes.Buffer // since the last match
	all    bytes.Buffer
}

// Start starts argv as the leader of a session with a terminal. The test skips
// where there are no pseudo-terminals.
func Start(t *testing.T, o Options, argv ...string) *Console {
	t.Helper()
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	master := os.NewFile(uintptr(fd), "master")
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("this user may not open the terminal: %v", err)
	}
	defer slave.Close()
	c := &Console{t: t, master: master, name: slave.Name(), Cmd: exec.CommandContext(t.Context(), argv[0], argv[1:]...), output: make(chan []byte)}
	c.Cmd.Stdin, c.Cmd.Stdout, c.Cmd.Stderr = slave, slave, slave
	c.Cmd.Env, c.Cmd.Dir = o.Env, o.Dir
	if c.Cmd.Env == nil {
		c.Cmd.Env = []string{"PATH=/usr/bin:/bin", "TERM=dumb", "PS1=ready> ", "HOME=/nonexistent"}
	}
	if c.Cmd.Dir == "" {
		c.Cmd.Dir = "/"
	}
	c.Cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	c.Resize(24, 80)
	if err := c.Cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go c.read()
	t.Cleanup(func() {
		killSession(c.Cmd.Process.Pid)
		c.Cmd.Process.Kill()
		master.Close()
		for range c.output {
		}
	})
	return c
}

// killSession kills what is left of the session that leader led: jobs in the
// background outlive their terminal.
func killSession(leader int) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return
	}
	for _, name := range stats {
		var pid, parent, group, session int
		var state, rest string
		data, err := os.ReadFile(name)
		if err != nil {
			continue // it has just ended
		}
		after := data[bytes.LastIndexByte(data, ')')+1:]
		if _, err := fmt.Sscan(string(after), &state, &parent, &group, &session); err != nil || session != leader {
			continue
		}
		if _, err := fmt.Sscan(string(data), &pid, &rest); err == nil {
			syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

func (c *Console) read() {
	defer close(c.output)
	for {
		b := make([]byte, 32<<10)
		n, err := c.master.Read(b)
		if err != nil {
			return
		}
		c.output <- b[:n]
	}
}

// Expect waits for pattern in what was written since the last match, and reports
// its first group, or all of it.
func (c *Console) Expect(pattern string) string {
	c.t.Helper()
	re := regexp.MustCompile(pattern)
	ctx, cancel := context.WithTimeout(c.t.Context(), wait)
	defer cancel()
	for {
		if at := re.FindSubmatchIndex(c.seen.Bytes()); at != nil {
			first := at[:2]
			if len(at) > 2 {
				first = at[2:4]
			}
			got := string(c.seen.Bytes()[first[0]:first[1]])
			c.seen.Next(at[1])
			return got
		}
		select {
		case b, ok := <-c.output:
			if !ok {
				c.t.Fatalf("the terminal closed; no %q in %q", pattern, c.seen.String())
			}
			c.seen.Write(b)
			c.all.Write(b)
		case <-ctx.Done():
			c.t.Fatalf("no %q in %q", pattern, c.seen.String())
		}
	}
}

// Peek reads for a while.
func (c *Console) Peek(d time.Duration) {
	late := time.After(d)
	for {
		select {
		case b, ok := <-c.output:
			if !ok {
				return
			}
			c.seen.Write(b)
			c.all.Write(b)
		case <-late:
			return
		}
	}
}

// Name is the path of the terminal.
func (c *Console) Name() string { return c.name }

// Shown is everything that Expect, Peek and Exit have read.
func (c *Console) Shown() string { return c.all.String() }

// Send types keys.
func (c *Console) Send(keys string) {
	c.t.Helper()
	if _, err := c.master.WriteString(keys); err != nil {
		c.t.Fatal(err)
	}
}

// Resize changes the size of the window.
func (c *Console) Resize(rows, columns uint16) {
	c.t.Helper()
	if err := unix.IoctlSetWinsize(int(c.master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: columns}); err != nil {
		c.t.Fatal(err)
	}
}

// Modes are those of the terminal now.
func (c *Console) Modes() unix.Termios {
	c.t.Helper()
	m, err := unix.IoctlGetTermios(int(c.master.Fd()), unix.TCGETS)
	if err != nil {
		c.t.Fatal(err)
	}
	return *m
}

// Await waits until the modes are as fit says.
func (c *Console) Await(what string, fit func(unix.Termios) bool) {
	c.t.Helper()
	late := time.After(wait)
	for tick := time.Tick(5 * time.Millisecond); !fit(c.Modes()); { // the kernel tells nobody
		select {
		case <-tick:
		case <-late:
			c.t.Fatalf("the terminal is not %s: %+v", what, c.Modes())
		}
	}
}

// Raw reports whether nothing is done to keys.
func Raw(m unix.Termios) bool { return m.Lflag&(unix.ICANON|unix.ECHO) == 0 }

// Exit waits for the end and reports the exit code.
func (c *Console) Exit() int {
	ended := make(chan struct{})
	go func() { c.Cmd.Wait(); close(ended) }()
	for {
		select {
		case b, ok := <-c.output:
			if !ok {
				<-ended
				return c.Cmd.ProcessState.ExitCode()
			}
			c.seen.Write(b)
			c.all.Write(b)
		case <-ended:
			c.Peek(time.Second) // what it wrote last; others may hold the terminal open
			return c.Cmd.ProcessState.ExitCode()
		}
	}
}

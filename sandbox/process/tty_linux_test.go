package process

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// console is a person at a terminal: a program runs on the other side.
type console struct {
	t      *testing.T
	master *os.File
	cmd    *exec.Cmd
	output chan []byte
	seen   bytes.Buffer
}

// atTerminal starts argv as the leader of a session with a terminal.
func atTerminal(t *testing.T, argv ...string) *console {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("this user may not open the terminal: %v", err)
	}
	defer slave.Close()
	c := &console{t: t, master: master, cmd: exec.CommandContext(t.Context(), argv[0], argv[1:]...), output: make(chan []byte)}
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = slave, slave, slave
	c.cmd.Env, c.cmd.Dir = []string{"PATH=/usr/bin:/bin", "TERM=dumb", "PS1=ready> ", "HOME=/nonexistent"}, "/"
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go c.read()
	t.Cleanup(func() {
		c.cmd.Process.Kill()
		master.Close()
		for range c.output {
		}
	})
	return c
}

func (c *console) read() {
	defer close(c.output)
	for {
		b := make([]byte, 4096)
		n, err := c.master.Read(b)
		if err != nil {
			return
		}
		c.output <- b[:n]
	}
}

// expect waits for pattern in what was written since the last match.
func (c *console) expect(pattern string) {
	c.t.Helper()
	re := regexp.MustCompile(pattern)
	ctx, cancel := context.WithTimeout(c.t.Context(), 10*time.Second)
	defer cancel()
	for {
		if at := re.FindIndex(c.seen.Bytes()); at != nil {
			c.seen.Next(at[1])
			return
		}
		select {
		case b, ok := <-c.output:
			if !ok {
				c.t.Fatalf("the terminal closed; no %q in %q", pattern, c.seen.String())
			}
			c.seen.Write(b)
		case <-ctx.Done():
			c.t.Fatalf("no %q in %q", pattern, c.seen.String())
		}
	}
}

func (c *console) send(keys string) {
	c.t.Helper()
	if _, err := c.master.WriteString(keys); err != nil {
		c.t.Fatal(err)
	}
}

// exit reports how the program ended.
func (c *console) exit() int {
	c.cmd.Wait()
	return c.cmd.ProcessState.ExitCode()
}

const ctrlC, ctrlZ = "\x03", "\x1a"

func TestTerminalInterrupt(t *testing.T) {
	needNamespaces(t)
	c := atTerminal(t, self(t), "launch", "/bin/sh", "-c", "echo st''arted; exec sleep 60")
	c.expect("started")
	c.send(ctrlC)
	if code := c.exit(); code != 130 {
		t.Errorf("exit %d", code)
	}
	c = atTerminal(t, self(t), "launch", "/bin/sh", "-c", `trap 'n=$((n+1))' INT; echo st''arted; sleep 1; sleep 1; echo "interrupts: $n"; exit 4`)
	c.expect("started")
	c.send(ctrlC)
	c.expect("interrupts: 1\r") // once, not once more through the launcher
	if code := c.exit(); code != 4 {
		t.Errorf("exit %d", code)
	}
}

// TestTerminalJobControl stops and resumes the launcher as a job of a shell.
func TestTerminalJobControl(t *testing.T) {
	needNamespaces(t)
	c := atTerminal(t, "/bin/bash", "--norc", "--noprofile", "--noediting", "-i")
	c.expect("ready> ")
	c.send(self(t) + " launch /bin/sh -c 'echo st\"\"arted; read x; echo \"got $x\"; exit 7'\n")
	c.expect("started")
	c.send(ctrlZ)
	c.expect("Stopped")
	c.expect("ready> ")
	c.send("echo the shell an''swers\n")
	c.expect("the shell answers")
	c.send("fg\n")
	c.expect("launch /bin/sh") // the shell says what it resumes
	c.send("hello\n")
	c.expect("got hello")
	c.send("echo exit $?\n")
	c.expect("exit 7\r")
}

// TestTerminalShellInside runs an interactive shell with jobs of its own.
func TestTerminalShellInside(t *testing.T) {
	needNamespaces(t)
	c := atTerminal(t, self(t), "launch", "/bin/bash", "--norc", "--noprofile", "--noediting", "-i")
	c.expect("ready> ")
	// No sleep in the loop: a shell that is stopped while its child has yet to
	// execute (vfork) does not stop.
	c.send(`sh -c 'trap "echo ag\"\"ain" CONT; echo in""side; while :; do :; done'` + "\n")
	c.expect("inside")
	c.send(ctrlZ)
	c.expect("Stopped")
	c.expect("ready> ")
	c.send("fg\n")
	c.expect("again")
	c.send(ctrlC)
	c.expect("ready> ")
	c.send("tty; exit 6\n")
	c.expect("/dev/console")
	if code := c.exit(); code != 6 {
		t.Errorf("exit %d", code)
	}
}

// TestTerminalInjection pushes a command into the launcher's terminal, for the
// shell that runs when the program is gone.
func TestTerminalInjection(t *testing.T) {
	needNamespaces(t)
	c := atTerminal(t, self(t), "launch", self(t), "attack", "tiocsti")
	c.expect("tiocsti stopped: operation not permitted")
	if code := c.exit(); code != attackStopped {
		t.Errorf("exit %d", code)
	}
}

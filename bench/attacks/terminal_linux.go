package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	expectTimeout = 5 * time.Second
	look          = 20 * time.Millisecond
)

// terminal is a pseudo-terminal with a shell, or a contestant, at its other end.
type terminal struct {
	a             *attempt
	fd            int
	master, slave *os.File
	argv          []string
	mu            sync.Mutex // of screen
	screen        []byte
	from          int // what await has not looked at yet
}

// atTerminal opens a terminal and lets the attack type.
func (a *attempt) atTerminal(argv []string) error {
	quoted := make([]string, 0, len(argv))
	for _, s := range argv {
		quoted = append(quoted, "'"+s+"'")
	}
	a.command = strings.Join(quoted, " ")
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	t := &terminal{a: a, fd: fd, master: os.NewFile(uintptr(fd), "terminal"), argv: argv} // #nosec: a descriptor
	ended := make(chan struct{})
	defer func() {
		t.master.Close()
		<-ended
		a.screen = t.screen
	}()
	if t.slave, err = openSlave(fd); err != nil {
		close(ended)
		return err
	}
	defer t.slave.Close()
	go func() {
		defer close(ended)
		t.read()
	}()
	if err := t.slave.Chown(a.uid, a.gid); err != nil {
		return err
	}
	a.attack.terminal(a, t)
	return nil
}

func openSlave(master int) (*os.File, error) {
	if err := unix.IoctlSetPointerInt(master, unix.TIOCSPTLCK, 0); err != nil {
		return nil, err
	}
	n, err := unix.IoctlGetInt(master, unix.TIOCGPTN)
	if err != nil {
		return nil, err
	}
	return os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
}

// read keeps what is shown, until the terminal is closed.
func (t *terminal) read() {
	buf := make([]byte, 4096)
	for {
		n, err := t.master.Read(buf)
		t.mu.Lock()
		if len(t.screen) < outputLimit {
			t.screen = append(t.screen, buf[:n]...)
		}
		t.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// start runs a command of the person at the terminal; the result ends it.
func (t *terminal) start(argv ...string) (end func(), done <-chan struct{}) {
	cmd := exec.CommandContext(t.a.ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = t.a.ws, t.a.environment(t.a.who)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = t.slave, t.slave, t.slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: t.a.credential(), Setsid: true, Setctty: true}
	closed := make(chan struct{})
	if err := cmd.Start(); err != nil {
		t.a.fail(err)
		close(closed)
		return func() {}, closed
	}
	go func() {
		cmd.Wait() //nolint:errcheck // it is killed, or the screen says how it ended
		close(closed)
	}()
	return func() {
		cmd.Process.Kill() //nolint:errcheck // it may have ended
		<-closed
	}, closed
}

// shell is an interactive shell at the terminal.
func (t *terminal) shell() (end func()) {
	end, _ = t.start("/bin/bash", "--norc", "--noprofile", "-i")
	t.await("ready> ")
	return end
}

// direct runs the contestant itself there, to its end.
func (t *terminal) direct() {
	end, done := t.start(t.argv...)
	defer end()
	select {
	case <-done:
	case <-time.After(expectTimeout * 2):
	}
	t.pause() // for the last of what it showed
}

// enter types.
func (t *terminal) enter(keys string) {
	if _, err := t.master.WriteString(keys); err != nil {
		t.a.fail(err)
	}
}

// await waits until the screen shows text, after what was awaited before. It reports
// whether it did.
func (t *terminal) await(text string) bool {
	return t.until(func() bool {
		t.mu.Lock()
		defer t.mu.Unlock()
		i := bytes.Index(t.screen[t.from:], []byte(text))
		if i >= 0 {
			t.from += i + len(text)
		}
		return i >= 0
	})
}

// awaitFile waits until a file holds text.
func (t *terminal) awaitFile(path, text string) bool {
	return t.until(func() bool {
		data, err := os.ReadFile(path)
		return err == nil && bytes.Contains(data, []byte(text))
	})
}

func (t *terminal) until(fits func() bool) bool {
	for end := time.Now().Add(expectTimeout); !fits(); {
		select {
		case <-t.a.ctx.Done():
			return false
		case <-time.After(look):
		}
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

// pause gives whoever reads beside the shell the time to.
func (t *terminal) pause() {
	select {
	case <-t.a.ctx.Done():
	case <-time.After(6 * look):
	}
}

// echoes reports whether the terminal shows what is typed.
func (t *terminal) echoes() bool {
	m, err := unix.IoctlGetTermios(t.fd, unix.TCGETS)
	return err == nil && m.Lflag&unix.ECHO != 0
}

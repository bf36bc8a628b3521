package approve

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"egressd/internal/linux/foreground"
	"egressd/internal/screen"
)

// foregroundEvery is how often is looked whether the person has brought this process
// to the foreground. The kernel tells nobody.
const foregroundEvery = 200 * time.Millisecond

// terminal is /dev/tty for the time of one question.
type terminal struct {
	fd    int
	saved *unix.Termios
	group int  // the process group that was in the foreground; 0: this one was
	wake  int  // readable at the end of the time
	alone bool // nobody else uses it
}

// ask asks q and reports the answer, which is no if nobody can
// be asked.
//
// With Hold the terminal is this process's alone, and reset; a process in the
// background asks when it is brought to the foreground. Without, the program may own
// the terminal, in raw mode, and read from it: launch makes itself the foreground
// group for the time of the question. The mode of the terminal is saved, set to lines
// with echo, and restored.
//
// Threat: the person is typing to the program when the question appears, and
// the keys answer it -> what was typed before the question is discarded.
// Left over: a key typed in the same instant.
//
// Threat: what the program wrote hides the question or changes it -> see
// [screen.Reset]; and with Hold it writes nothing meanwhile. Left over: without Hold,
// in a tier whose program has the person's terminal, it may write over the question.
func (t *Terminal) ask(ctx context.Context, q query) word {
	tty, err := openTerminal(t.Path)
	if err != nil {
		return no
	}
	defer tty.close()
	var pipe [2]int
	if unix.Pipe2(pipe[:], unix.O_CLOEXEC) != nil {
		return no
	}
	defer func() { _ = unix.Close(pipe[0]) }()
	stop := context.AfterFunc(ctx, func() { _ = unix.Close(pipe[1]) })
	defer func() {
		if stop() {
			_ = unix.Close(pipe[1])
		}
	}()
	tty.wake = pipe[0]
	reset := screen.Reset + screen.Palette
	if t.Hold != nil {
		if !tty.foreground(ctx) {
			return no
		}
		release, err := t.Hold(ctx)
		if err != nil {
			return no
		}
		defer release()
		reset = screen.Reset
	}
	if tty.take(t.Hold != nil) != nil {
		return no
	}
	w, key := no, byte(0)
	if _, err = tty.Write([]byte(reset + "\n" + q.text)); err == nil {
		w, key = read(tty, tty, q)
	}
	if ctx.Err() != nil {
		_, _ = tty.Write([]byte("\nlaunch: no answer in time: denied\n"))
		w = no
	}
	if w == saved {
		t.save(q, tty)
	}
	tty.giveBack()
	switch key {
	case interrupt:
		_ = unix.Kill(os.Getpid(), unix.SIGINT) // for the program: it is passed on
	case quit:
		_ = unix.Kill(os.Getpid(), unix.SIGQUIT)
	}
	return w
}

func openTerminal(path string) (*terminal, error) {
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("terminal: %w", err)
	}
	return &terminal{fd: fd}, nil
}

func (t *terminal) close() { _ = unix.Close(t.fd) }

// foreground waits until this process may read the terminal, and reports false if
// that does not come about in time. A terminal that is not this process's
// controlling one knows no foreground.
func (t *terminal) foreground(ctx context.Context) bool {
	tick := time.NewTicker(foregroundEvery)
	defer tick.Stop()
	for told := false; ; told = true {
		if group := foreground.Of(t.fd); group < 0 || group == unix.Getpgrp() {
			return true
		}
		if !told {
			_, _ = t.Write([]byte("\r\nlaunch: a question waits: bring launch to the foreground (fg) to answer it\r\n"))
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false
		}
	}
}

// take makes this process the reader of the terminal. With alone, no other process
// uses it, and signals of its keys are read as keys.
func (t *terminal) take(alone bool) error {
	var err error
	if t.saved, err = unix.IoctlGetTermios(t.fd, unix.TCGETS); err != nil {
		return fmt.Errorf("terminal: %w", err)
	}
	t.alone = alone
	if !alone {
		signal.Ignore(syscall.SIGTTOU) // a background process that changes the terminal is stopped by it
	}
	if group := foreground.Of(t.fd); !alone && group > 0 && group != unix.Getpgrp() {
		if err := unix.IoctlSetPointerInt(t.fd, unix.TIOCSPGRP, unix.Getpgrp()); err != nil {
			signal.Reset(syscall.SIGTTOU)
			return fmt.Errorf("terminal: %w", err)
		}
		t.group = group
	}
	mode := *t.saved
	mode.Iflag |= unix.ICRNL | unix.BRKINT
	mode.Iflag &^= unix.INLCR | unix.IGNCR
	mode.Oflag |= unix.OPOST | unix.ONLCR
	mode.Lflag |= unix.ICANON | unix.ECHO | unix.ECHOE | unix.ISIG | unix.IEXTEN
	if alone {
		mode.Lflag &^= unix.ISIG
		mode.Cc[unix.VEOL], mode.Cc[unix.VEOL2] = interrupt, quit
	}
	if err := unix.IoctlSetTermios(t.fd, unix.TCSETSF, &mode); err != nil { // ...F discards what was typed before
		t.giveBack()
		return fmt.Errorf("terminal: %w", err)
	}
	return nil
}

// giveBack restores mode and foreground group, and continues a program that was
// stopped because it read meanwhile.
func (t *terminal) giveBack() {
	_ = unix.IoctlSetTermios(t.fd, unix.TCSETS, t.saved)
	if t.group > 0 {
		_ = unix.IoctlSetPointerInt(t.fd, unix.TIOCSPGRP, t.group)
		_ = unix.Kill(-t.group, unix.SIGCONT)
	}
	if !t.alone {
		signal.Reset(syscall.SIGTTOU)
	}
}

// Read waits for input or for the end of the time.
func (t *terminal) Read(p []byte) (int, error) {
	for {
		fds := []unix.PollFd{{Fd: int32(t.fd), Events: unix.POLLIN}, {Fd: int32(t.wake), Events: unix.POLLIN}}
		_, err := unix.Poll(fds, -1)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return 0, err
		case fds[1].Revents != 0:
			return 0, os.ErrDeadlineExceeded
		}
		n, err := unix.Read(t.fd, p)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		return n, err
	}
}

func (t *terminal) Write(p []byte) (int, error) { return unix.Write(t.fd, p) }

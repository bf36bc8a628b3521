package approve

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// terminal is /dev/tty for the time of one question.
type terminal struct {
	fd    int
	saved *unix.Termios
	group int // the process group that was in the foreground; 0: this one was
	wake  int // readable at the end of the time
}

// ask asks the question and reports the answer, which is no if nobody can be asked.
//
// The program may own the terminal, in raw mode, and read from it. So that there is
// one reader only, launch makes itself the foreground group for the time of the
// question. With freeze the program is stopped first: a read that it has begun
// would get the keys all the same. It continues afterwards. The mode of the
// terminal is saved, set to lines with echo, and restored.
//
// Threat: the person is typing to the program when the question appears, and
// the keys answer it -> what was typed before the question is discarded.
// Left over: a key typed in the same instant.
func ask(ctx context.Context, path string, freeze bool, question string) word {
	t, err := openTerminal(path)
	if err != nil {
		return no
	}
	defer t.close()
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
	t.wake = pipe[0]
	if t.take(freeze) != nil {
		return no
	}
	defer t.giveBack()
	if _, err := t.Write([]byte("\r\n" + question)); err != nil {
		return no
	}
	w := read(t, t)
	if ctx.Err() != nil {
		_, _ = t.Write([]byte("\nlaunch: no answer in time: denied\n"))
		return no
	}
	return w
}

func openTerminal(path string) (*terminal, error) {
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("terminal: %w", err)
	}
	saved, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("terminal: %w", err)
	}
	return &terminal{fd: fd, saved: saved}, nil
}

func (t *terminal) close() { _ = unix.Close(t.fd) }

// take makes this process the reader of the terminal.
func (t *terminal) take(freeze bool) error {
	signal.Ignore(syscall.SIGTTOU) // a background process that changes the terminal is stopped by it
	if group, err := unix.IoctlGetInt(t.fd, unix.TIOCGPGRP); err == nil && group > 0 && group != unix.Getpgrp() {
		if freeze {
			_ = unix.Kill(-group, unix.SIGSTOP) // fails for another user's group, which is not ours to stop
		}
		if err := unix.IoctlSetPointerInt(t.fd, unix.TIOCSPGRP, unix.Getpgrp()); err != nil {
			_ = unix.Kill(-group, unix.SIGCONT)
			signal.Reset(syscall.SIGTTOU)
			return fmt.Errorf("terminal: %w", err)
		}
		t.group = group
	}
	mode := *t.saved
	mode.Iflag |= unix.ICRNL | unix.BRKINT
	mode.Iflag &^= unix.INLCR | unix.IGNCR
	mode.Oflag |= unix.OPOST | unix.ONLCR
	mode.Lflag |= unix.ICANON | unix.ECHO | unix.ECHOE | unix.ISIG
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
	signal.Reset(syscall.SIGTTOU)
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

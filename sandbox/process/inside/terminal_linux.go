package inside

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"egressd/sandbox/process/control"
)

// ownTerminal gives the program a terminal of its own wherever the standard files
// are terminals: a pseudo-terminal in the private /dev/pts, with the modes and the
// size of theirs. Its master goes out to the supervisor, which relays. This process
// leads its session, as a shell does, so that the program is a job of it: it can be
// stopped and is in the foreground or the background.
//
// Threat: a program that holds the person's terminal reads what is typed into the
// shell outside when launch is stopped or in the background, pushes commands into
// it, and writes over launch's own words -> nothing inside has a descriptor of it;
// /dev/tty is the program's own terminal, or none. Left over: what the program
// writes reaches the person's terminal while the supervisor relays, and makes it do
// what such sequences can.
func (b *builder) ownTerminal() error {
	var terminals []int
	for fd := range 3 {
		if _, err := unix.IoctlGetTermios(fd, unix.TCGETS); err == nil {
			terminals = append(terminals, fd)
		}
	}
	if len(terminals) == 0 {
		return nil
	}
	master, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("/dev/ptmx: %w", err)
	}
	defer unix.Close(master)
	slave, err := pseudoTerminal(master, terminals[0])
	if err != nil {
		return err
	}
	in := b.initProcess
	in.tty = os.NewFile(uintptr(slave), "terminal")
	for _, fd := range terminals {
		if err := unix.Dup3(slave, fd, 0); err != nil {
			return fmt.Errorf("dup3: %w", err)
		}
	}
	return in.ctl.Send(control.Message{Terminal: &control.TerminalReady{}}, master)
}

// pseudoTerminal opens the other side of master as the controlling terminal, with
// the modes and the size of terminal like.
func pseudoTerminal(master, like int) (slave int, err error) {
	if err := unix.IoctlSetPointerInt(master, unix.TIOCSPTLCK, 0); err != nil {
		return -1, fmt.Errorf("TIOCSPTLCK: %w", err)
	}
	fd, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(master), unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC)
	if errno != 0 {
		return -1, fmt.Errorf("TIOCGPTPEER: %w", errno)
	}
	slave = int(fd)
	mode, err := unix.IoctlGetTermios(like, unix.TCGETS)
	if err == nil {
		err = unix.IoctlSetTermios(slave, unix.TCSETS, mode)
	}
	if err != nil {
		return -1, fmt.Errorf("terminal modes: %w", err)
	}
	if size, err := unix.IoctlGetWinsize(like, unix.TIOCGWINSZ); err == nil {
		unix.IoctlSetWinsize(slave, unix.TIOCSWINSZ, size) //nolint:errcheck // a size is not needed
	}
	const steal = 0 // from another session
	if err := unix.IoctlSetInt(slave, unix.TIOCSCTTY, steal); err != nil {
		return -1, fmt.Errorf("controlling terminal: %w", err)
	}
	return slave, nil
}

package machine

import (
	"context"
	"os"
	"syscall"

	"egressd/internal/linux/pty"
)

// Command is a program to start.
type Command struct {
	Argv []string // the program is looked up in PATH of Env
	Dir  string   // absolute
	Env  []string // the whole environment
	Root bool     // as root, as far as it goes: see Machine.Exec

	Other *Identity // whom the program sees itself as if not Root; nil: the machine's user

	Terminal *pty.Size // the program gets a terminal of that size; nil: it gets none
}

// Identity is a user of a machine.
type Identity struct {
	UID int `json:"uid"`
	GID int `json:"gid"`
}

// Exit is how a program ended.
type Exit struct {
	Code  int   `json:"code"`   // as in a shell: 128 + the signal
	CPUms int64 `json:"cpu_ms"` // that it and what it waited for took
	Lost  bool  `json:"-"`      // the machine stopped, and it with it
}

// Process is a program that was started.
type Process struct {
	Stdout, Stderr *os.File    // the caller reads and closes both; nil on a terminal
	Terminal       *os.File    // the other end of the program's terminal, which the caller closes; nil without one
	Exited         <-chan Exit // gets one value, when it has ended or the machine has stopped

	m  *Machine
	id uint64
}

// Exec starts a program in a session of its own. Root runs it as uid 0 of a user
// namespace of its own: it sees itself as root, and may do no more than others.
// Where the kernel refuses that it stays the user that it is.
func (m *Machine) Exec(ctx context.Context, c Command) (*Process, error) {
	c, err := m.disk.asUser(c)
	if err != nil {
		return nil, err
	}
	if c.Terminal != nil {
		return m.onTerminal(ctx, c)
	}
	outR, outW, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	errR, errW, err := os.Pipe()
	if err != nil {
		closeAll([]*os.File{outR, outW})
		return nil, err
	}
	exited := make(chan Exit, 1)
	r := request{Op: opExec, Argv: c.Argv, Dir: c.Dir, Env: c.Env, Root: c.Root, Other: c.Other}
	id, files, err := m.ask(ctx, r, &waiter{exited: exited}, outW, errW)
	closeAll(append(files, outW, errW))
	if err != nil {
		closeAll([]*os.File{outR, errR})
		return nil, err
	}
	return &Process{Stdout: outR, Stderr: errR, Exited: exited, m: m, id: id}, nil
}

func (m *Machine) onTerminal(ctx context.Context, c Command) (*Process, error) {
	exited := make(chan Exit, 1)
	r := request{Op: opExec, Argv: c.Argv, Dir: c.Dir, Env: c.Env, Root: c.Root, Other: c.Other, Terminal: c.Terminal}
	id, files, err := m.ask(ctx, r, &waiter{exited: exited})
	if err != nil {
		return nil, err
	}
	if len(files) != 1 {
		closeAll(files)
		return nil, &Error{Kind: BadFile, Text: "no terminal came"}
	}
	if err := syscall.SetNonblock(int(files[0].Fd()), true); err != nil { // #nosec: a descriptor
		closeAll(files)
		return nil, err
	}
	// Wrapped anew, so that a Close ends a Read.
	fd, err := syscall.Dup(int(files[0].Fd())) // #nosec: a descriptor
	closeAll(files)
	if err != nil {
		return nil, err
	}
	syscall.CloseOnExec(fd)
	return &Process{Terminal: os.NewFile(uintptr(fd), "terminal"), Exited: exited, m: m, id: id}, nil // #nosec: a descriptor
}

// Signal sends sig to the program, or with group to it and what it started. A
// program that has ended gets none, which is not an error.
func (p *Process) Signal(ctx context.Context, sig syscall.Signal, group bool) error {
	_, files, err := p.m.ask(ctx, request{Op: opSignal, Target: p.id, Signal: sig, Group: group}, new(waiter))
	closeAll(files)
	return err
}

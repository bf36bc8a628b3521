package inside

import (
	"fmt"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"

	"egressd/internal/linux/landlock"
	"egressd/internal/linux/seccomp"
	"egressd/internal/linux/unixdiag"
	"egressd/sandbox/process/control"
)

// handlers is how many of the program's system calls are answered at a time.
const handlers = 2

// landlockSockets is the ABI from which Landlock refuses sockets by path that
// were made outside (see landlock.Scope).
const landlockSockets = 9

// openDiag opens what tells this namespace's unix sockets from others. The
// system-call filter would refuse it later.
func (in *initProcess) openDiag() error {
	if in.skips("connect") || landlock.ABI() >= landlockSockets && !in.skips("landlock") {
		return nil
	}
	diag, err := unixdiag.Open()
	if err == nil {
		err = diag.Each(unixdiag.Listening, func(unixdiag.Socket) bool { return true })
	}
	if err != nil {
		return fmt.Errorf("unix sockets cannot be told apart (a kernel without unix_diag): %w", err)
	}
	in.diag = diag
	return nil
}

// listenCalls makes this thread, and the program that it will start, ask pid 1
// before certain system calls. The others of pid 1 do not ask.
func (in *initProcess) listenCalls() error {
	calls := seccomp.Calls{Connect: in.diag != nil, Write: !in.skips("notices")}
	calls.New = calls.Write && in.cfg.Learn
	if calls == (seccomp.Calls{}) {
		return nil
	}
	if err := looksInto(); err != nil {
		return err
	}
	if calls.Connect {
		if err := mayTrace(yamaScope); err != nil {
			return err
		}
	}
	// From now on new threads are made from one that does not ask.
	runtime.LockOSThread()
	l, err := seccomp.Listen(calls)
	if err != nil {
		return err
	}
	c := &connector{calls: l, told: &in.told, diag: in.diag, masks: in.cfg.Plan.Masks, nested: in.cfg.Nested}
	in.unwatched = calls.Write && in.covers()
	for range handlers {
		go serveCalls(l, c, &writer{calls: l, told: &in.told, nested: in.cfg.Nested})
	}
	return nil
}

// looksInto reports what keeps pid 1 from looking into the programs that it
// answers for: a container's filter, or a setting of the machine.
func looksInto() error {
	self, err := unix.PidfdOpen(unix.Getpid(), 0)
	if err != nil {
		return fmt.Errorf("pidfd_open: %w", err)
	}
	defer unix.Close(self)
	fd, err := unix.PidfdGetfd(self, controlFD, 0)
	if err != nil {
		return fmt.Errorf("pidfd_getfd (a container needs the capability SYS_PTRACE for it): %w", err)
	}
	unix.Close(fd)
	return nil
}

func serveCalls(l *seccomp.Listener, c *connector, w *writer) {
	runtime.LockOSThread()
	for {
		r, err := l.Receive()
		if err != nil {
			return // the kernel answers that there is no such call
		}
		if r.Call == unix.SYS_CONNECT {
			c.connect(r)
		} else {
			w.write(r)
		}
	}
}

// maxTold bounds the refusals that are told one by one.
const maxTold = 200

// notices are what was refused inside. The zero notices are empty.
type notices struct {
	ctl *control.Conn

	mu   sync.Mutex
	seen map[control.Refusal]bool
}

// tell reports r to the supervisor, unless it was told before; of what is beyond
// the bound, that there is more.
func (n *notices) tell(r control.Refusal) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.seen[r]:
		return
	case len(n.seen) == maxTold:
		r = control.Refusal{Call: control.CallMore}
	case len(n.seen) > maxTold:
		return
	case n.seen == nil:
		n.seen = map[control.Refusal]bool{}
	}
	n.seen[r] = true
	n.ctl.Send(control.Message{Refused: &r}) //nolint:errcheck // gone
}

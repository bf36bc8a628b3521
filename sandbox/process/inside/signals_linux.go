package inside

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// sigaction is the kernel's struct, with a mask of 64 signals.
type sigaction struct{ handler, flags, restorer, mask uintptr }

// Handlers that are none, asm-generic/signal-defs.h, and the last signal.
const (
	byDefault  = 0 // SIG_DFL
	ignored    = 1 // SIG_IGN
	lastSignal = 64

	// perThreadCall is what Go's runtime makes a system call on every thread
	// with (runtime.sigPerThreadSyscall).
	perThreadCall = 33
)

// outliveSignals makes this process, pid 1, survive every signal that a program
// inside can send. It comes before the first such program.
//
// Threat: a program inside ends pid 1, and with it the run, by a signal ->
// each signal that could is ignored or has a handler that returns. To leave the
// default action in place is not enough, although the kernel drops signals that
// pid 1 has no handler for: it does not drop one that the first thread blocks,
// and when another thread does not, that one's default action ends the process
// (complete_signal in kernel/signal.c). Go blocks all signals while it forks,
// and the program that it has forked runs already. Left over: a fault of pid
// 1's own, which the kernel does not let it ignore.
//
// None of it reaches the program inside. What Go handles it resets between fork
// and exec, and exec resets every handler; signals that were ignored from the
// start (nohup) stay ignored for that program's sake. This goes past os/signal,
// whose start costs more than the rest of the init.
func outliveSignals() {
	harmless, ok := action(unix.SIGURG) // for its stack and the way back
	harmless.handler = handlerPC()
	for s := unix.Signal(1); ok && s <= lastSignal; s++ {
		now, ok := action(s)
		switch {
		case !ok || now.handler == ignored:
		case s == unix.SIGCHLD || s == unix.SIGURG || s == perThreadCall && now.handler != byDefault:
			// The init's own: its children's ends, preemption.
		case now.handler != byDefault:
			setAction(s, sigaction{handler: ignored})
		case !harmlessByDefault(s):
			setAction(s, harmless) // Go leaves this one to a C library
		}
	}
}

// harmlessByDefault reports whether a signal's default action ends nothing:
// those that stop or continue cannot stop pid 1 from inside either.
func harmlessByDefault(s unix.Signal) bool {
	switch s {
	case unix.SIGKILL, unix.SIGSTOP: // no one can set or block these, so the kernel drops them
		return true
	case unix.SIGCHLD, unix.SIGCONT, unix.SIGURG, unix.SIGWINCH, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU:
		return true
	}
	return false
}

func action(s unix.Signal) (now sigaction, ok bool) {
	_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(s), 0, uintptr(unsafe.Pointer(&now)), unsafe.Sizeof(now.mask), 0, 0)
	return now, errno == 0
}

func setAction(s unix.Signal, to sigaction) {
	unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(s), uintptr(unsafe.Pointer(&to)), 0, unsafe.Sizeof(to.mask), 0, 0)
}

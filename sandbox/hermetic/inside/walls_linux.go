package inside

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"unsafe"

	"golang.org/x/sys/unix"

	"egressd/internal/linux/seccomp"
	"egressd/sandbox/hermetic/control"
)

const (
	maxStack   = 64 << 20 // of one goroutine; more is a runaway recursion
	maxThreads = 256
	processors = 2
)

// confine builds the walls that the launcher could not build before this
// process was there: descriptors, memory, processor time, system calls. Landlock
// came with it, and is only looked at. step is what could not be built.
func (w *worker) confine() (step string, err error) {
	debug.SetMaxStack(maxStack)
	debug.SetMaxThreads(maxThreads)
	debug.SetTraceback("single")
	runtime.GOMAXPROCS(processors)
	for _, s := range []struct {
		name string
		do   func() error
	}{
		{"descriptors", closeOthers},
		{"dumpable", notDumpable},
		{"signals", setSignals},
		{"rlimits", w.setLimits},
		{"landlock", lookAtLandlock},
		{"seccomp", w.filter},
	} {
		if w.skips(s.name) {
			continue
		}
		if err := s.do(); err != nil {
			return s.name, err
		}
	}
	return "", nil
}

// closeOthers closes what the launcher itself had inherited.
//
// Threat: a descriptor of the host (a directory, a socket) stays usable in spite
// of Landlock -> there is none but the standard files, which the launcher has
// looked at, and the control socket.
func closeOthers() error { return unix.CloseRange(control.StderrFD+1, math.MaxUint32, 0) }

// notDumpable keeps processes of the same user from reading this one's memory.
func notDumpable() error { return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }

// setSignals leaves the signals of a terminal to the launcher, which ends this
// process or lets it end, and lets the kernel end it where the Go runtime would
// go on: too much processor time.
func setSignals() error {
	const dflt, ignore = 0, 1
	for sig, handler := range map[unix.Signal]uintptr{
		unix.SIGINT: ignore, unix.SIGQUIT: ignore, unix.SIGTERM: ignore, unix.SIGHUP: ignore,
		unix.SIGUSR1: ignore, unix.SIGUSR2: ignore, unix.SIGPIPE: ignore,
		unix.SIGXCPU: dflt, unix.SIGXFSZ: ignore,
	} {
		action := struct{ handler, flags, restorer, mask uintptr }{handler: handler} // the kernel's sigaction
		_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(&action)), 0, unsafe.Sizeof(action.mask), 0, 0)
		if errno != 0 {
			return errno
		}
	}
	return nil
}

// setLimits bounds what this process may take from the machine. The Go runtime
// collects garbage harder near the limit of memory, before the kernel says no.
func (w *worker) setLimits() error {
	for resource, limit := range map[int]uint64{
		unix.RLIMIT_CORE: 0, unix.RLIMIT_NOFILE: w.bounds.Files, unix.RLIMIT_FSIZE: w.bounds.File,
		unix.RLIMIT_DATA: w.bounds.Data, unix.RLIMIT_AS: w.bounds.Address, unix.RLIMIT_CPU: w.bounds.CPU,
	} {
		var r unix.Rlimit
		if err := unix.Getrlimit(resource, &r); err != nil {
			return fmt.Errorf("getrlimit: %w", err)
		}
		hard := limit
		if resource == unix.RLIMIT_CPU {
			hard++ // so that SIGXCPU comes first and tells it from other ends
		}
		r.Cur, r.Max = min(r.Cur, limit), min(r.Max, hard)
		if err := unix.Setrlimit(resource, &r); err != nil {
			return fmt.Errorf("setrlimit: %w", err)
		}
	}
	return nil
}

// lookAtLandlock makes sure that this process came confined.
func lookAtLandlock() error {
	fd, err := unix.Open("/", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.EACCES) {
		return nil
	}
	if err == nil {
		unix.Close(fd)
		err = errors.New("this process was started unconfined")
	}
	return err
}

// filter loads the system-call filter into every thread.
func (w *worker) filter() error { return seccomp.InstallWorker(unix.Getpid()) }

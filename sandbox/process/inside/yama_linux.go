package inside

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"egressd/sandbox/process/spawn"
)

const (
	yamaScope = "/proc/sys/kernel/yama/ptrace_scope"
	// yamaCapable is the scope from which only who has CAP_SYS_PTRACE looks into other
	// processes, and 3 that from which nobody does until the machine starts anew
	// (Documentation/admin-guide/LSM/Yama.rst). Pid 1 has no capability.
	yamaCapable = 2

	// probeArg is the argument with which this program is the child of a probe.
	probeArg = "probe"
)

// mayTrace reports whether Yama keeps pid 1 from making the program's connections:
// it would take no descriptor from it, and every connect would be refused. The file
// scope only says whether it is worth trying, which would cost every start a
// process. A kernel without Yama has no such file.
func mayTrace(scope string) error {
	data, err := os.ReadFile(scope)
	if err != nil {
		return nil //nolint:nilerr // no Yama, or a first connect will tell
	}
	n, err := strconv.Atoi(string(bytes.TrimSpace(data)))
	if err != nil || n < yamaCapable {
		return nil //nolint:nilerr // as above
	}
	if err := takesDescriptor(); err != nil {
		again := ""
		if n > yamaCapable {
			again = ", which at 3 takes effect only after the machine has started anew with kernel.yama.ptrace_scope = 1 in /etc/sysctl.d"
		}
		return fmt.Errorf("kernel.yama.ptrace_scope is %d, so that pid 1 cannot make the program's connections (sudo sysctl -w kernel.yama.ptrace_scope=1%s): %w", n, again, err)
	}
	return nil
}

// takesDescriptor tries what a connect needs on a child that is like any program.
func takesDescriptor() error {
	in, out, err := os.Pipe()
	if err != nil {
		return err
	}
	defer in.Close()
	pid, err := syscall.ForkExec("/proc/self/exe", []string{spawn.Name, probeArg}, &syscall.ProcAttr{
		Env: []string{"GOMAXPROCS=1"}, Files: []uintptr{in.Fd(), 1, 2},
	})
	if err != nil {
		out.Close()
		return fmt.Errorf("a child to try it on: %w", err)
	}
	err = takeFrom(pid)
	out.Close() // which ends the child
	for {
		if _, e := syscall.Wait4(pid, nil, 0, nil); e != syscall.EINTR { //nolint:errorlint // an Errno
			return err
		}
	}
}

// takeFrom takes the standard input of a process.
func takeFrom(pid int) error {
	p, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return fmt.Errorf("pidfd_open: %w", err)
	}
	defer unix.Close(p)
	fd, err := unix.PidfdGetfd(p, 0, 0)
	if err != nil {
		return fmt.Errorf("pidfd_getfd: %w", err)
	}
	return unix.Close(fd)
}

// beProbed is the child: it stays until its parent has tried.
func beProbed() int {
	var b [1]byte
	for {
		n, err := unix.Read(0, b[:])
		if n == 0 || err != nil && err != unix.EINTR { //nolint:errorlint // an Errno
			return 0
		}
	}
}

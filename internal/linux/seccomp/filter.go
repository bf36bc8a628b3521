//go:build linux && (amd64 || arm64)

package seccomp

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Install loads the sandboxed program's filter for every thread of this
// process. Children inherit it, and nothing can remove it. The caller has set
// no_new_privs or holds CAP_SYS_ADMIN. The error wraps [ErrNotSupported] if this
// kernel has no filters.
func Install(o Options) error { return install(filter(o.rules())) }

// filter allows every system call but what rules refuse.
func filter(rules []rule) block {
	f := nativeOnly()
	for _, r := range rules {
		f = append(f, when(bpf.JumpEqual, r.number, r.body...)...)
	}
	return append(f, ret(retAllow))
}

// nativeOnly kills the process for a system call of another architecture or ABI,
// and leaves the number of any other in the accumulator.
//
// Threat: a program uses the 32-bit or x32 entry, whose numbers mean other calls
// -> no such call is ever compared with a rule: the process dies. Nothing is
// left over.
func nativeOnly() block {
	return join(
		block{
			bpf.LoadAbsolute{Off: offArch, Size: 4},
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: nativeArch, SkipTrue: 1},
			ret(retKill),
			loadNumber(),
		},
		abiRule(),
	)
}

func install(f block) error {
	code, err := assemble(f)
	if err != nil {
		return err
	}
	prog := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]} // #nosec: see TestJumpsFit
	thread, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER,
		unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&prog)))
	switch {
	case e == unix.ENOSYS || e == unix.EINVAL:
		return errors.Join(ErrNotSupported, os.NewSyscallError("seccomp", e))
	case e != 0:
		return os.NewSyscallError("seccomp", e)
	case thread != 0: // seccomp(2): the thread that has another filter
		return fmt.Errorf("seccomp: thread %d can't take the filter", thread)
	}
	return nil
}

func assemble(f block) ([]unix.SockFilter, error) {
	raw, err := bpf.Assemble(f)
	if err != nil {
		return nil, fmt.Errorf("assemble the system-call filter: %w", err)
	}
	code := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		code[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	return code, nil
}

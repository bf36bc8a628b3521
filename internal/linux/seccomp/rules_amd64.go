//go:build linux

package seccomp

import (
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

const nativeArch = unix.AUDIT_ARCH_X86_64

// x32Bit marks system calls of the x32 ABI (asm/unistd.h), which come under
// the same architecture with other numbers.
const x32Bit = 0x40000000

// abiRule kills x32 calls. The number -1 has the bit too: debuggers use it to
// skip a call, and the kernel answers ENOSYS.
func abiRule() block {
	return join(
		when(bpf.JumpEqual, 0xffffffff, ret(retAllow)),
		when(bpf.JumpBitsSet, x32Bit, ret(retKill)),
	)
}

func archRules() []rule {
	eperm := refuse(unix.EPERM)
	return []rule{
		{"iopl", unix.SYS_IOPL, eperm, "hardware ports"},
		{"ioperm", unix.SYS_IOPERM, eperm, "hardware ports"},
		{"uselib", unix.SYS_USELIB, eperm, "old kernel surface; no libc of today calls it"},
		{"ustat", unix.SYS_USTAT, eperm, "as uselib"},
		{"sysfs", unix.SYS_SYSFS, eperm, "as uselib"},
	}
}

// archWriting are the calls for writing that only this architecture has.
func (c Calls) archWriting(why string) []rule {
	ask := block{ret(retNotify)}
	return []rule{
		{"open", unix.SYS_OPEN, c.writingFlags(1), why},
		{"creat", unix.SYS_CREAT, ask, why},
		{"mkdir", unix.SYS_MKDIR, ask, why},
		{"rename", unix.SYS_RENAME, ask, why},
	}
}

//go:build linux

package e2e

import "golang.org/x/sys/unix"

// portCalls are the system calls for the ports of a PC's devices.
func portCalls(call func(name string, nr int, ctl control, a ...uint64) escape) []escape {
	return []escape{
		call("iopl", unix.SYS_IOPL, maybe, 3),
		call("ioperm", unix.SYS_IOPERM, maybe, 0x80, 1, 1),
	}
}

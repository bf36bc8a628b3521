//go:build unix

package workspace

import "syscall"

// nonBlocking opens a FIFO without waiting for somebody at its other end.
const nonBlocking = syscall.O_NONBLOCK

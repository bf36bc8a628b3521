//go:build unix

package stage

import "syscall"

const (
	openRead = syscall.O_RDONLY | noBlock | noFollow

	noBlock  = syscall.O_NONBLOCK // a FIFO must not hold up a scan
	noFollow = syscall.O_NOFOLLOW
)

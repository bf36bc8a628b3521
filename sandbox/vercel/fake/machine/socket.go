package machine

import (
	"os"
	"syscall"
)

// socketPair makes two connected unix stream sockets: the owner's and the
// agent's.
func socketPair() (pair [2]*os.File, err error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		return pair, os.NewSyscallError("socketpair", err)
	}
	for i, fd := range fds {
		syscall.CloseOnExec(fd)
		pair[i] = os.NewFile(uintptr(fd), "agent") // #nosec: a descriptor
	}
	return pair, nil
}

package watch

import (
	"os"
	"syscall"
)

// mountNamespace starts a process as root of a mount namespace of its own,
// whoever runs the tests.
func mountNamespace() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{}
	if os.Geteuid() != 0 {
		attr = userNamespace()
	}
	attr.Cloneflags |= syscall.CLONE_NEWNS
	return attr
}

// userNamespace starts a process as root of a user namespace of its own.
func userNamespace() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}},
	}
}

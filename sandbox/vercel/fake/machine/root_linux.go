package machine

import (
	"os"
	"syscall"
)

// identityAttr makes a program that user of a user namespace in which it is alone.
func identityAttr(i Identity) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{
		Setsid:      true,
		Cloneflags:  syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: i.UID, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: i.GID, HostID: os.Getgid(), Size: 1}},
	}
}

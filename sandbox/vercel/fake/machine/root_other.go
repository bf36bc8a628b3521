//go:build !linux

package machine

import "syscall"

// identityAttr does nothing here: user namespaces exist on Linux only.
func identityAttr(Identity) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

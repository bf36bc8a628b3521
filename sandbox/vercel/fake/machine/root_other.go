//go:build !linux

package machine

import "syscall"

// rootAttr does nothing here: user namespaces exist on Linux only.
func rootAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

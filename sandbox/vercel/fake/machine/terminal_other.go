//go:build !linux

package machine

import "syscall"

// onTerminal does nothing here: package pty makes no terminal.
func onTerminal(*syscall.SysProcAttr) {}

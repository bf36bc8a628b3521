package main

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"unsafe"
)

// namespace has cmd run in a network namespace of its own, which takes root.
func namespace(cmd *exec.Cmd) {
	if os.Geteuid() != 0 {
		say("not root: the machine's own network is used, and peers that are missing stay so")
		return
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
}

// loopbackUp sets the loopback up; it is up in the machine's own network.
func loopbackUp() error {
	if os.Geteuid() != 0 {
		return nil
	}
	s, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer syscall.Close(s)
	request := struct { // struct ifreq
		name  [16]byte
		flags uint16
		_     [22]byte
	}{flags: syscall.IFF_UP | syscall.IFF_RUNNING}
	copy(request.name[:], "lo")
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(s), syscall.SIOCSIFFLAGS, uintptr(unsafe.Pointer(&request))); errno != 0 { // #nosec G103 -- the kernel's own layout
		return fmt.Errorf("set the loopback up: %w", errno)
	}
	return nil
}

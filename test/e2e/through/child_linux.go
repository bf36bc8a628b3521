package main

import (
	"os/exec"
	"syscall"
)

// dieWithUs ends c when this process is killed.
func dieWithUs(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

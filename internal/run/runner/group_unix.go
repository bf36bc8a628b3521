//go:build unix

package runner

import (
	"os/exec"
	"syscall"
)

// apart keeps signals of the terminal, which are the runner's business, from a job.
func apart(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

//go:build !unix

package runner

import "os/exec"

// apart does nothing: there is no process tier here that could run a job.
func apart(*exec.Cmd) {}

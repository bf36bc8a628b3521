package process

import (
	"errors"
	"io/fs"
	"syscall"
	"time"

	"egressd/sandbox"
)

// Exit codes, as in a shell.
const (
	exitTimeout       = 124 // the run took too long
	exitLauncher      = 125 // no harness was started
	exitNotExecutable = 126
	exitNotFound      = 127
	exitSignal        = 128 // plus the signal
)

// defaultGrace is between SIGTERM and SIGKILL.
const defaultGrace = 5 * time.Second

func grace(spec sandbox.Spec) time.Duration {
	if spec.Grace > 0 {
		return spec.Grace
	}
	return defaultGrace
}

// exitCodeOf is the exit code of a program that could not be executed.
func exitCodeOf(err error) int {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return exitNotFound
	}
	return exitNotExecutable
}

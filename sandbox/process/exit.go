package process

import (
	"time"

	"egressd/sandbox"
)

// Exit codes, as in a shell.
const (
	exitTimeout  = 124 // the run took too long
	exitLauncher = 125 // no harness was started
	exitSignal   = 128 // plus the signal
)

// defaultGrace is between SIGTERM and SIGKILL.
const defaultGrace = 5 * time.Second

func grace(spec sandbox.Spec) time.Duration {
	if spec.Grace > 0 {
		return spec.Grace
	}
	return defaultGrace
}

//go:build !linux

package hermetic

import (
	"context"

	"egressd/sandbox"
)

// Walls reports a *sandbox.CapabilityError: this tier needs Linux.
func Walls() error {
	return &sandbox.CapabilityError{
		Isolation: isolation,
		What:      "Landlock and seccomp exist on Linux only",
		Fix:       "run it in a Linux virtual machine or container",
	}
}

// Supports reports a *sandbox.CapabilityError: this tier needs Linux.
func (b *Backend) Supports(sandbox.Spec) error { return Walls() }

// Run reports a *sandbox.CapabilityError: this tier needs Linux.
func (b *Backend) Run(context.Context, sandbox.Spec) (sandbox.Result, error) {
	return sandbox.Result{ExitCode: 125}, Walls()
}
